"""Assertions of `howsure.testing`: in every form that `assess` takes, as a test would call them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from scipy import special

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.testing import assert_covers, assert_holds

N = 600
Y = child(0, "testing").permutation(special.ndtri((np.arange(N) + 0.5) / N))
"""Normal, with as many rows in every interval as it claims."""
ZERO, ONE = np.zeros(N), np.ones(N)
REGION = np.where(np.arange(N) % 2, "north", "south")


def normal(sd: float = 1.0) -> howsure.Distribution:
    return howsure.Distribution.normal(ZERO, sd * ONE)


def intervals(reach: float = 1.645) -> howsure.Intervals:
    return howsure.Intervals(-reach * ONE, reach * ONE, coverage=0.9)


@pytest.mark.parametrize("prediction", [normal(), intervals(), {"a": normal(), "b": intervals()}])
def test_right_predictions_pass(prediction: Any) -> None:
    assert_covers(Y, prediction)
    assert_covers(Y, prediction, by=REGION)


@pytest.mark.parametrize("prediction", [normal(0.6), intervals(1.0), {"narrow": normal(0.6)}])
def test_narrow_predictions_fail_with_the_numbers(prediction: Any) -> None:
    with pytest.raises(AssertionError, match=r"^1 of 1 fails\n✗ .*: empirical_coverage ≥ 0.89 at"):
        assert_covers(Y, prediction)


def test_a_group_fails_alone() -> None:
    prediction = howsure.Distribution.normal(ZERO, np.where(REGION == "north", 1.1, 0.6))
    for by in (REGION, {"region": REGION}):
        name = "region" if isinstance(by, dict) else "group"
        with pytest.raises(AssertionError, match=rf"^1 of 2 fails\n✗ model: {name}=south: emp"):
            assert_covers(Y, prediction, min=0.85, by=by)
    with pytest.raises(AssertionError, match="region=south"):
        assert_covers(Y, prediction, min=0.85, by="region", groups={"region": REGION})
    with pytest.raises(InputError, match="by must be one of region, got 'regio'; near: region"):
        assert_covers(Y, prediction, by="regio", groups={"region": REGION})


def test_a_most_an_own_least_and_a_level() -> None:
    assert_covers(Y, normal(), min=0.8, max=0.95)
    with pytest.raises(AssertionError, match=r"empirical_coverage ≤ 0.85 at 0.9"):
        assert_covers(Y, normal(), max=0.85)
    with pytest.raises(AssertionError, match=r"empirical_coverage ≥ 0.79 at 0.8: "):
        assert_covers(Y, normal(0.6), coverage=0.8)
    several = howsure.Intervals(
        np.stack([-0.3 * ONE, -1.7 * ONE], 1),
        np.stack([0.3 * ONE, 1.7 * ONE], 1),
        coverage=[0.5, 0.9],
    )
    with pytest.raises(AssertionError, match=r"^1 of 2 fails\n✗ model: empirical_coverage ≥ 0.49"):
        assert_covers(Y, several)
    with pytest.raises(InputError, match=r"got 90: did you mean 0.9"):
        assert_covers(Y, normal(), min=90)


def test_undecided_passes_unless_proof_is_required() -> None:
    y, few = special.ndtri((np.arange(30) + 0.5) / 30), normal().take(np.arange(30))
    assert_covers(y, few)
    with pytest.raises(AssertionError, match="inconclusive"):
        assert_covers(y, few, undecided="fail")
    assert_covers(Y, normal(1.5), min=0.9, undecided="fail")


def test_an_unknown_coverage_is_asked_for() -> None:
    unknown = howsure.Intervals(-ONE, ONE)
    with pytest.raises(InputError, match=r"unknown: pass coverage=0\.9, or min"):
        assert_covers(Y, unknown)
    with pytest.raises(AssertionError, match=r"≥ 0.8: 0.6"):
        assert_covers(Y, unknown, min=0.8)


def test_tables_in_every_form(tmp_path: Path) -> None:
    table = {"y": Y, "lower_90": -ONE, "upper_90": ONE, "region": REGION}
    path = tmp_path / "t.csv"
    csv.write_csv(pa.table(table), path)
    for held in (table, str(path), path, [path]):
        with pytest.raises(AssertionError, match=r"empirical_coverage ≥ 0.89 at 0.9: 0.6"):
            assert_covers(held)
        with pytest.raises(AssertionError, match=r"^2 of 2 fail\n✗ .*region=north"):
            assert_covers(held, by="region")
        assert_covers(held, min=0.5, by=["region"])
    loaded = howsure.load(path, groups="region")
    with pytest.raises(AssertionError, match=r"^2 of 2 fail"):
        assert_covers(loaded, by="region")
    with pytest.raises(InputError, match=r"keyword must be one of .*; near: groups"):
        assert_covers(table, group="region")


def test_frames_are_tables() -> None:
    pd = needs("pandas")
    frame = pd.DataFrame({"y": Y, "lower_90": -ONE, "upper_90": ONE, "region": REGION})
    with pytest.raises(AssertionError, match=r"^2 of 2 fail"):
        assert_covers(frame, by="region")
    with pytest.raises(AssertionError, match="region=north"):
        assert_covers(frame["y"], intervals(1.0), by=frame["region"])


def test_any_limit_and_the_verdict() -> None:
    assert_holds(Y, normal(), limits=[{"measure": "crps", "max": 0.7}], fail_on="bad")
    with pytest.raises(AssertionError, match=r"✗ model: crps ≤ 0.5: 0\.5"):
        assert_holds(Y, normal(), limits=[{"measure": "crps", "max": 0.5}])
    with pytest.raises(AssertionError, match="they under-cover by"):
        assert_holds(Y, normal(0.6), fail_on="bad", findings=["coverage"])
    with pytest.raises(AssertionError, match=r"^1 of 2 fails\n✗ model: group=north: bias"):
        assert_holds(
            Y + 0.5 * (REGION == "north"),
            normal(),
            limits=[{"measure": "bias", "min": -0.2}],
            by=REGION,
        )
    with pytest.raises(InputError, match="assert_holds: nothing to judge"):
        assert_holds(Y, normal())
    with pytest.raises(InputError, match=r"assert_holds: limit 1: key must be one of .*'most'"):
        assert_holds(Y, normal(), limits=[{"measure": "mae", "most": 2}])
    with pytest.raises(
        InputError, match=r"keyword must be one of .*'confidense'; near: confidence"
    ):
        assert_holds(Y, normal(), limits=[{"measure": "mae", "max": 2}], confidense=0.9)


def test_the_file_of_the_command_serves(tmp_path: Path) -> None:
    """The same limits as in the command's test, and a choice that the test changes."""
    path = tmp_path / "limits.toml"
    path.write_text(
        'by = ["region"]\nlimits = [{measure = "coverage", min = 0.85, at = 0.9}]\n'
        'fail_on = "bad"\nfindings = ["coverage"]\n'
    )
    groups = {"region": REGION}
    assert_holds(Y, normal(), limits=path, groups=groups)
    with pytest.raises(AssertionError, match=r"^3 of 3 fail"):
        assert_holds(Y, normal(0.6), limits=str(path), groups=groups)
    with pytest.raises(AssertionError, match=r"^2 of 2 fail"):
        assert_holds(Y, normal(0.6), limits=path, groups=groups, fail_on="never", findings=())
    with pytest.raises(
        InputError,
        match=r"names the groups 'region', .*give howsure.Table\(…, groups=\{'region': labels\}\)$",
    ):
        assert_holds(Y, normal(), limits=path)
    assert_holds(howsure.Table(Y, normal(), groups={"region": REGION}), limits=path)
    table = {"y": Y, "mean": ZERO, "sd": 0.6 * ONE, "region": REGION}
    with pytest.raises(AssertionError, match=r"^3 of 3 fail"):
        assert_holds(table, limits=path)


def test_no_test_framework_is_imported() -> None:
    code = (
        "import sys, howsure.testing; print([m for m in ('pytest', '_pytest') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_groups_of_a_frame_are_its_columns() -> None:
    pd = needs("pandas")
    y = np.random.default_rng(0).normal(size=400)
    normal = howsure.Distribution.normal(np.zeros(400), np.ones(400))
    side = np.where(np.arange(400) < 200, "a", "b")
    with pytest.raises(AssertionError, match="side=a") as named:
        assert_covers(y, normal, min=0.99, by={"side": side})
    with pytest.raises(AssertionError) as framed:
        assert_covers(y, normal, min=0.99, by=pd.DataFrame({"side": side}))
    assert str(framed.value) == str(named.value)
