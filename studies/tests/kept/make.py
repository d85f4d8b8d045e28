"""Write results as this version ships them, beside this script, where its form is a new one.

    python studies/tests/kept/make.py

As in `tests/kept/make.py`, what is here stays as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from howsure_studies.engine import Plan, Store, run
from howsure_studies.engine.shipped import FORM, shipped_bytes

PLACE = Path(__file__).with_name(f"shipped-{FORM}.parquet")
OPTIONS = {"coverages": [0.8], "simulations": 2, "n_test": 5, "n_train": 12}
PLAN = Plan(
    name="kept",
    study="pointwise",
    worlds={"line": "linear"},
    methods={"t": "linear_t", "ridge": "bayesian_ridge"},
    options=OPTIONS,
)

if __name__ == "__main__" and not PLACE.exists():
    with TemporaryDirectory() as folder:
        run(PLAN, Store(folder))
        PLACE.write_bytes(shipped_bytes(PLAN, Store(folder)))
    sys.stdout.write(f"written: {PLACE.name}, {PLACE.stat().st_size:,} bytes\n")
