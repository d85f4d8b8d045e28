"""How many examples Hypothesis tries: a quarter by default, in an order that never changes.

``HOWSURE_FUZZ=10``, as in `make fuzz`, tries ten times as many as a test names, from fresh seeds.
What that finds is kept as an ``@example`` of its test.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = int(os.environ.get("HOWSURE_FUZZ", "0"))
_SHARE = TIMES or 0.25


def examples(count: int, **kwargs: Any) -> settings:
    """Settings of a test whose long form tries ``count`` examples."""
    tried = max(round(count * _SHARE), 5)
    return settings(max_examples=tried, derandomize=not TIMES, deadline=None, **kwargs)
