"""Real tables of strangers: read as pandas reads them, roles found or asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.inputs import load

pd = needs("pandas")

Find = Callable[[str], Path]


def test_intervals_of_a_toolkit(data_dir: Find) -> None:
    """Every column is known by its name; the nominal coverage is not, and stays unknown."""
    path = data_dir("preds_ucc_uq360") / "sample_predict.csv.gz"
    (made,) = load(path).evalsets
    frame = pd.read_csv(path, float_precision="round_trip")
    np.testing.assert_array_equal(made.y, frame["actual"])
    np.testing.assert_array_equal(made.point, frame["pred"])
    (prediction,) = made.predictions
    assert prediction.coverages == ()
    np.testing.assert_array_equal(prediction.lower[:, 0], frame["lb"])
    np.testing.assert_array_equal(prediction.upper[:, 0], frame["ub"])


@pytest.mark.parametrize("name", ["dhs_incountry", "dhs_ooc"])
def test_poverty_by_country(data_dir: Find, name: str) -> None:
    """``label`` is y; one model's column is named; countries and years are groups."""
    path = data_dir("preds_poverty_africa") / f"{name}.csv.gz"
    (made,) = load(path, point="Resnet-18 MS", groups="country,year,urban").evalsets
    frame = pd.read_csv(path, float_precision="round_trip")
    np.testing.assert_array_equal(made.y, frame["label"])
    np.testing.assert_array_equal(made.point, frame["Resnet-18 MS"])
    for group in ("country", "year"):
        assert made.groups[group].values().tolist() == frame[group].tolist()
    assert made.groups["urban"].labels.tolist() == ["False", "True"]


def test_chemistry_with_molecules_as_labels(data_dir: Find) -> None:
    """SMILES hold #, brackets, slashes and backslashes."""
    path = data_dir("preds_chem_pernot") / "RAS2023__logP_150k_LS-GCN_test.csv.gz"
    (made,) = load(path, y="logP", sd="uq", rows="smiles").evalsets
    frame = pd.read_csv(path, float_precision="round_trip")
    np.testing.assert_array_equal(made.y, frame["logP"])
    np.testing.assert_array_equal(made.predictions[0].point(), frame["y_pred"])
    np.testing.assert_array_equal(made.predictions[0].sd(), frame["uq"])
    assert made.row_names().tolist() == frame["smiles"].tolist()
    with pytest.raises(InputError, match=r"name it with howsure.Table\(…, y=COLUMN\)"):
        load(path)
