"""What tests of image tasks share: a part that is not read, for a reason that is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howsure.core.errors import InputError
from howsure_studies.tasks.images import image_task


def refused(words: str, name: str, folder: Path, part: str = "train", **options: Any) -> None:
    """A part is not read, of a download that need not be whole unless `complete` says so."""
    with pytest.raises(InputError, match=words):
        image_task(name, folder=folder, **{"complete": False, **options}).part(part)
