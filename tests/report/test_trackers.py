"""Numbers as experiment trackers keep them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import howsure
from extras import needs


def test_mlflow_keeps_every_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its local store; names of several models, and of models that look alike, are taken."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = needs("mlflow")
    y = np.random.default_rng(0).normal(size=100)
    law = howsure.Distribution.normal(np.zeros(100), np.ones(100))
    numbers = howsure.assess(
        y, {"a b": law, "a:b": law, "é/": law}, options=howsure.Options(trials=False)
    ).numbers()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        mlflow.log_metrics(numbers)
    assert mlflow.get_run(run.info.run_id).data.metrics == numbers
    assert {"a_b/crps", "a_b_2/crps", "findings_bad"} <= set(numbers)
