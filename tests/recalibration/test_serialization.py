"""What was learnt is kept as plain JSON, and does the same on another day."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from damage import damaged, places
from howsure.core.errors import HowsureError, InputError
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.predictions.columns import prediction_columns
from howsure.recalibration import (
    METHODS,
    FittedParameter,
    FittedRecalibration,
    load_recalibration,
    methods_of,
)
from howsure.recalibration.base import POINT
from howsure.recalibration.info import KINDS, RecalibrationOptions
from howsure.recalibration.serialization import TaughtScale, _kept_classes
from howsure.recalibration.shape import IsotonicRecalibrator

_OF_CLASSES = (LabelSets.kind, Probabilities.kind)
WAYS = [(kind, name) for kind in KINDS for name in methods_of(kind)]


def rows(kind: str, seed: int, n: int = 240) -> EvalSet:
    """Rows of one kind of prediction, with groups, an input and times."""
    rng = np.random.default_rng(seed)
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.5, 0.5, n))
    y = mean + 0.1 + 1.3 * sd * rng.normal(size=n)
    made: dict[str, Any] = {
        Intervals.kind: lambda: Intervals(mean - sd, mean + sd, coverage=0.8),
        Distribution.kind: lambda: Distribution.normal(mean, sd),
        Quantiles.kind: lambda: Quantiles([0.05, 0.5, 0.95], mean[:, None] + [-1.6, 0.0, 1.6]),
        Samples.kind: lambda: Samples(mean[:, None] + rng.normal(size=(n, 19))),
        POINT: lambda: (),
        LabelSets.kind: lambda: label_sets(n, rng),
        Probabilities.kind: lambda: Probabilities(rng.dirichlet(np.ones(3), size=n)),
    }
    if kind in _OF_CLASSES:
        y = rng.integers(3, size=n).astype(np.float64)
    return EvalSet.checked(
        y,
        made[kind](),
        point=mean if kind == POINT else None,
        features={
            "x": rng.uniform(size=n),
            "site": rng.choice(["p", "q"], n),
            "ease": np.round(rng.uniform(size=n), 3),
        },
        groups={"region": rng.choice(["north", "south"], n)},
        time=np.datetime64("2024-01-01", "D") + np.arange(n),
    )


def label_sets(n: int, rng: np.random.Generator) -> LabelSets:
    """Sets of three classes with their probabilities."""
    stated = rng.dirichlet(np.ones(3), size=n)
    return LabelSets(stated > 0.3, 0.8, stated)


def options() -> RecalibrationOptions:
    return RecalibrationOptions(
        coverage=0.8,
        coverages=(0.8,),
        by=("region",),
        since=np.datetime64("2024-02-01"),
    )


def numbers(mend: FittedRecalibration, kind: str) -> dict[str, Any]:
    made = mend.apply(rows(kind, 1)).evalset
    if kind in _OF_CLASSES:  # which have no columns
        return dict(made.predictions[0].numbers())
    return prediction_columns(made)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), WAYS)
def test_every_method_does_the_same_when_it_is_read_back(
    tmp_path: Path, kind: str, name: str
) -> None:
    fitted = methods_of(kind)[name].make(kind, options()).fit(rows(kind, 0))
    mend = FittedRecalibration(recalibrators=(fitted,), by=("region",), features={"x": "number"})
    mend.save(tmp_path / "mend.json")
    again = load_recalibration(tmp_path / "mend.json")
    ours, theirs = numbers(mend, kind), numbers(again, kind)
    assert ours.keys() == theirs.keys()
    for column, values in ours.items():
        np.testing.assert_array_equal(values, theirs[column])
    assert (again.methods, again.guarantees) == (mend.methods, mend.guarantees)
    assert (again.by, again.features) == (("region",), {"x": "number"})
    assert again.source.endswith("mend.json")
    again.save(tmp_path / "twice.json")
    assert (tmp_path / "twice.json").read_bytes() == (tmp_path / "mend.json").read_bytes()


def scaler(value: float = 2.0) -> FittedRecalibration:
    learnt = (FittedParameter(name="factor", value=value),)
    fitted = IsotonicRecalibrator(
        belief="samples", method="isotonic", parameters=learnt, guarantee="", fitted_to="x"
    )
    return FittedRecalibration(recalibrators=(fitted,))


@pytest.mark.parametrize("value", [0.1 + 0.2, 5e-324, -0.0, math.inf, -math.inf, math.nan, 1e308])
def test_numbers_are_exact(tmp_path: Path, value: float) -> None:
    scaler(value).save(tmp_path / "mend.json")
    (fitted,) = load_recalibration(tmp_path / "mend.json").recalibrators
    found = fitted.parameters[0].value
    assert np.float64(found).tobytes() == np.float64(value).tobytes()


def test_the_file_is_plain_json_with_its_form(tmp_path: Path) -> None:
    scaler(math.inf).save(tmp_path / "mend.json")

    def refuse(text: str) -> None:
        raise AssertionError(text)

    text = (tmp_path / "mend.json").read_text(encoding="utf-8")
    held = json.loads(text, parse_constant=refuse)
    assert (held["format"], held["version"]) == ("howsure recalibration", 1)


@pytest.mark.parametrize("content", ["{}", "important", '{"format": "other"}', ""])
def test_no_other_file_is_replaced(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mend.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="exists and is not a saved recalibration"):
        scaler().save(path)
    assert path.read_text(encoding="utf-8") == content
    path.unlink()
    scaler(1.0).save(path)
    scaler(3.0).save(path)
    assert load_recalibration(path).recalibrators[0].parameters[0].value == 3.0
    assert [each.name for each in tmp_path.iterdir()] == ["mend.json"]
    with pytest.raises(InputError, match=r"saved in a \.json file"):
        scaler().save(tmp_path / "mend.pkl")


def altered(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "mend.json"
    scaler().save(path)
    held = json.loads(path.read_text(encoding="utf-8"))
    change(held)
    path.write_text(json.dumps(held), encoding="utf-8")
    return path


def fitted_of(held: Any) -> Any:
    return held["mend"]["kept.Mend"]["recalibrators"][0]["isotonic.IsotonicRecalibrator"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda held: held.update(format="other"), "its format is different"),
        (lambda held: held.update(version=2), "has version 2, and this howsure reads 1"),
        (lambda held: held.update(version=True), "has version True"),
        (lambda held: held.pop("mend"), "is not a saved recalibration"),
        (lambda held: held.update(mend=[]), "is not a saved recalibration"),
        (lambda held: held.update(mend={"kept.Mend": 3}), "is not a saved recalibration"),
        (lambda held: held.update(mend={"Path": {}}), "'Path' is not a method of this howsure"),
        (
            lambda held: held.update(mend={"base.Learnt": {"name": "a", "value": 1.0}}),
            "it has none",
        ),
        (lambda held: held["mend"].update(more=1), "is not a saved recalibration"),
        (
            lambda held: fitted_of(held).update(method=3),
            "method of isotonic.IsotonicRecalibrator must be text, got 3",
        ),
        (
            lambda held: fitted_of(held).update(parameters="x"),
            "parameters of isotonic.IsotonicRecalibrator",
        ),
        (
            lambda held: fitted_of(held).update(other="x"),
            "isotonic.IsotonicRecalibrator has no 'other'",
        ),
        (lambda held: fitted_of(held).pop("method"), "is not a saved recalibration"),
        (
            lambda held: fitted_of(held)["parameters"][0]["base.Learnt"].update(value=True),
            "value of base.Learnt must be a number, got True",
        ),
        (
            lambda held: fitted_of(held)["parameters"][0]["base.Learnt"].update(
                value={"float": "9"}
            ),
            "a float must be inf",
        ),
        (
            lambda held: fitted_of(held)["parameters"][0]["base.Learnt"].update(value=10**30),
            "a number is too large",
        ),
        (
            lambda held: fitted_of(held).update(fitted_to={"array": ["|V8", [1], [1]]}),
            "is not a saved recalibration",
        ),
        (
            lambda held: fitted_of(held).update(fitted_to={"array": ["<U500000000", [1], ["a"]]}),
            "cannot be saved",
        ),
        (
            lambda held: fitted_of(held).update(fitted_to={"array": ["<f8", [7], [1.0]]}),
            "is not a saved recalibration",
        ),
    ],
)
def test_what_is_foreign_is_refused(tmp_path: Path, change: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_recalibration(altered(tmp_path, change))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[",
        b"NaN",
        b"1e999",
        b"9" * 5000,
        b"[" * 100_000,
        b'{"format": "howsure recalibration", "version": 1, "mend": '
        + b"[" * 900
        + b"]" * 900
        + b"}",
        b'{"format": "howsure recalibration", "version": 1, "mend": {"kept.Mend": {"by": 1e999}}}',
    ],
)
def test_what_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mend.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not a saved recalibration"):
        load_recalibration(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.json"):
        with pytest.raises(InputError, match="no such file"):
            load_recalibration(path)


def test_every_cell_of_a_file_may_be_anything(tmp_path: Path) -> None:
    """Whatever stands in place of a value, the file is read, refused, or refused when applied."""
    path = tmp_path / "mend.json"
    fitted = METHODS["cqr"].make("intervals", options()).fit(rows("intervals", 0))
    FittedRecalibration(recalibrators=(fitted,), scales=TaughtScale.of(rows("intervals", 0))).save(
        path
    )
    whole = json.loads(path.read_text(encoding="utf-8"))
    given = rows("intervals", 1)

    tried = refused = 0
    for place in places(whole["mend"]):
        for put in (None, -1, 0.5, "text", [], {}, {"float": "nan"}):
            held = {**whole, "mend": damaged(whole["mend"], place, put)}
            path.write_text(json.dumps(held), encoding="utf-8")
            tried += 1
            try:
                load_recalibration(path).apply(given)
            except HowsureError:
                refused += 1
    assert refused > tried / 2


def test_rows_of_another_kind_are_refused() -> None:
    fitted = METHODS["scale"].make("distributions", options()).fit(rows("distributions", 0))
    with pytest.raises(InputError, match="the rows must have distributions"):
        FittedRecalibration(recalibrators=(fitted,)).apply(rows("intervals", 0))


def test_a_kind_of_which_nothing_was_learnt_is_left_out_and_said() -> None:
    fitted = METHODS["cqr"].make("intervals", options()).fit(rows("intervals", 0))
    both = replace(
        rows("intervals", 1),
        predictions=(*rows("intervals", 1).predictions, *rows("distributions", 1).predictions),
    )
    made = FittedRecalibration(recalibrators=(fitted,)).apply(both)
    assert [each.kind for each in made.evalset.predictions] == ["intervals"]
    assert "There is no fit for distributions" in " ".join(made.notes)


def test_no_method_changes_nothing() -> None:
    given = rows("distributions", 0)
    assert FittedRecalibration().apply(given).evalset is given


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in _OF_CLASSES])
def test_other_units_are_noticed_and_drift_is_not(kind: str) -> None:
    mend = FittedRecalibration(scales=TaughtScale.of(rows(kind, 0)))
    assert mend.notes(rows(kind, 1)) == ()
    held = rows(kind, 1)

    def moved(factor: float, shift: float) -> EvalSet:
        point = None if held.point is None else shift + factor * held.point
        made: tuple[Any, ...] = ()
        if held.predictions:
            (prediction,) = held.predictions
            if isinstance(prediction, Intervals):
                ends = shift + factor * prediction.lower, shift + factor * prediction.upper
                made = (Intervals(*ends, coverage=0.8),)
            elif isinstance(prediction, Distribution):
                loc, scale = (prediction.parameters[name] for name in ("loc", "scale"))
                made = (Distribution.normal(shift + factor * loc, factor * scale),)
            elif isinstance(prediction, Quantiles):
                made = (Quantiles(prediction.levels, shift + factor * prediction.values),)
            else:
                assert isinstance(prediction, Samples)
                made = (Samples(shift + factor * prediction.sorted_samples),)
        return replace(held, predictions=made, point=point)

    assert mend.notes(moved(3.0, 5.0)) == ()
    (told,) = mend.notes(moved(1.0, 273.15))
    assert "check the units" in told
    if kind != POINT:  # which says nothing of its spread
        for factor in (100.0, 0.01):
            (told,) = mend.notes(moved(factor, 0.0))
            assert "check the units" in told


KEPT_BY_0_2_0 = [
    "affine.IntervalShifter",
    "affine.PointMover",
    "base.Learnt",
    "conformal.QuantilesRecalibrator",
    "crude.CrudeRecalibrator",
    "derived.DerivedRecalibrator",
    "ease.EaseCuts",
    "group.GroupMover",
    "group.GroupRecalibrator",
    "inputs.InputsMover",
    "intervals.IntervalRecalibrator",
    "isotonic.IsotonicRecalibrator",
    "kept.Mend",
    "moving.AffineMover",
    "recent.RecentMover",
    "recent.RecentRecalibrator",
    "sets.SetRecalibrator",
    "shape.ShapedColumns",
    "variance.VarianceMover",
]


def test_files_say_what_they_said_whatever_classes_are_called(tmp_path: Path) -> None:
    assert set(KEPT_BY_0_2_0) <= set(_kept_classes())
    load_recalibration(altered(tmp_path, lambda held: None))
    assert "kept.Mend" in next(tmp_path.glob("*.json")).read_text(encoding="utf-8")
