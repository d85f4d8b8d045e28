"""African countries as WILDS PovertyMap's fold A parts them."""

from __future__ import annotations

from typing import Final

HOME: Final = (
    "cameroon",
    "democratic_republic_of_congo",
    "ghana",
    "kenya",
    "lesotho",
    "malawi",
    "mozambique",
    "nigeria",
    "senegal",
    "togo",
    "uganda",
    "zambia",
    "zimbabwe",
)
"""Countries of the training set and of its in-distribution validation set."""

AWAY: Final = ("angola", "cote_d_ivoire", "ethiopia", "mali", "rwanda")
"""Countries of the test set."""
