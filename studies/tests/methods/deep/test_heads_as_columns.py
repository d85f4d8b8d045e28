"""What heads state, as columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.inputs import load, write_table
from howsure.predictions import EvalSet, Quantiles, mixture
from howsure.predictions.columns import to_columns
from howsure_studies.methods.deep.heads import HEADS, head_named


def stated(name: str, members: int) -> Any:
    """What a head's network, or several together, would say of 6 rows."""
    head = head_named(name)
    rng = np.random.default_rng(len(name))
    outputs = rng.normal(size=(members, head.outputs, 6))
    predictions = [head.prediction(part, 0.0, 1.0) for part in outputs]
    return predictions[0] if members == 1 else mixture(predictions)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("name", "members"),
    [(name, members) for name in HEADS for members in (1, 2) if (name, members) != ("quantile", 2)],
)
def test_what_every_head_states_comes_back(
    name: str, members: int, ending: str, tmp_path: Path
) -> None:
    """From a file, by the names of its columns alone."""
    prediction = stated(name, members)
    y = np.arange(6.0)
    write_table(to_columns(EvalSet.checked(y, prediction)), tmp_path / f"table{ending}")
    loaded = load(tmp_path / f"table{ending}")
    (again,) = loaded.evalsets[0].predictions
    assert type(again) is type(prediction)
    levels = [0.05, 0.5, 0.95]
    np.testing.assert_array_equal(again.quantile(levels), prediction.quantile(levels))
    assert "ignored" not in {use.role for use in loaded.explanation}
    if isinstance(prediction, Quantiles):
        np.testing.assert_array_equal(again.values, prediction.values)
        return
    assert again.law.name == prediction.law.name
    for parameter, values in prediction.parameters.items():
        np.testing.assert_array_equal(again.parameters[parameter], values)
    np.testing.assert_array_equal(again.log_density(y), prediction.log_density(y))
