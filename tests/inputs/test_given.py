"""Bare arrays and mappings are read as what they are, or refused with what settles it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import howsure
from extras import needs
from generated import examples
from howsure import Distribution, Intervals, Quantiles, Samples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs.given import PredictionInput, check_row_order, read_given

N = 60
RNG = child(0, "given")
MEAN = 3.0 + RNG.normal(size=N)
LOW, HIGH = MEAN - 1.0, MEAN + 2.0
SD = np.full(N, 0.5)
DRAWS = MEAN[:, None] + RNG.normal(size=(N, 20))
TABLE = np.column_stack([LOW, MEAN, HIGH])
LEVELS = [0.1, 0.5, 0.9]
ENDS = np.stack([np.column_stack([LOW, LOW - 1]), np.column_stack([HIGH, HIGH + 1])], axis=1)
"""As MAPIE gives them, shape (n, 2, k)."""
CROSSED = np.where(np.arange(N)[:, None] == 3, TABLE[:, ::-1], TABLE)
NEARLY_ORDERED = MEAN[:, None] + np.arange(1.0, 100.0)
"""Quantiles, of which two cross in one row."""
NEARLY_ORDERED[7, :2] = NEARLY_ORDERED[7, 1::-1]
HOLED = np.where(np.arange(N) == 3, np.nan, MEAN)


def read(value: Any, n: int = N, **said: Any) -> PredictionInput:
    """The one model that is given."""
    (held,) = read_given(value, n=n, **said).values()
    return held


def same(found: PredictionInput, expected: Any, point: Any = None) -> None:
    """One prediction, equal to the one that is made by its constructor."""
    (made,) = found.predictions
    assert type(made) is type(expected)
    for key, value in expected.numbers().items():
        np.testing.assert_array_equal(made.numbers()[key], value)
    for key in ("levels", "coverages"):
        if hasattr(expected, key):
            np.testing.assert_array_equal(getattr(made, key), getattr(expected, key))
    if point is None:
        assert found.point is None
    else:
        np.testing.assert_array_equal(found.point, point)


INTERVALS = Intervals(LOW, HIGH, 0.9)
BOTH = Intervals(ENDS[:, 0], ENDS[:, 1], [0.8, 0.95])
QUANTILES = Quantiles(LEVELS, TABLE)
NORMAL = Distribution.normal(MEAN, SD)
SAMPLES = Samples(DRAWS)


@pytest.mark.parametrize(
    ("value", "said", "expected"),
    [
        ((LOW, HIGH), {"coverage": 0.9}, INTERVALS),
        ([LOW, HIGH], {"coverage": [0.9]}, INTERVALS),
        ([LOW.tolist(), HIGH.tolist()], {"coverage": 0.9}, INTERVALS),
        ((LOW[:, None], HIGH[:, None]), {"coverage": 0.9}, INTERVALS),
        (TABLE[:, [0, 2]], {"coverage": 0.9}, INTERVALS),
        (TABLE[:, [0, 2]].tolist(), {"coverage": 0.9}, INTERVALS),
        (np.stack([LOW, HIGH]), {"coverage": 0.9}, INTERVALS),
        (ENDS[:, :, :1], {"coverage": 0.9}, INTERVALS),
        (ENDS, {"coverage": [0.8, 0.95]}, BOTH),
        (ENDS[:, :, ::-1], {"coverage": [0.95, 0.8]}, BOTH),
        ((ENDS[:, 0], ENDS[:, 1]), {"coverage": [0.8, 0.95]}, BOTH),
        ({"lower": LOW, "upper": HIGH}, {"coverage": 0.9}, INTERVALS),
        ({"lower_90": LOW, "upper_90": HIGH}, {}, INTERVALS),
        ((MEAN, SD), {}, NORMAL),
        ([MEAN.tolist(), SD.tolist()], {}, NORMAL),
        ({"mean": MEAN, "sd": SD}, {}, NORMAL),
        (TABLE, {"levels": LEVELS}, QUANTILES),
        (TABLE, {"levels": LEVELS, "coverage": 0.8}, QUANTILES),
        (TABLE[:, ::-1], {"levels": LEVELS[::-1]}, QUANTILES),
        (TABLE.T, {"levels": LEVELS}, QUANTILES),
        (list(TABLE.T), {"levels": LEVELS}, QUANTILES),
        ((LOW, MEAN, HIGH), {"levels": LEVELS}, QUANTILES),
        ((LOW, HIGH), {"levels": [0.05, 0.95]}, Quantiles([0.05, 0.95], TABLE[:, [0, 2]])),
        (TABLE[:, [0, 2]], {"levels": [0.1, 0.9]}, Quantiles([0.1, 0.9], TABLE[:, [0, 2]])),
        (MEAN, {"levels": 0.5}, Quantiles([0.5], MEAN)),
        ({0.9: HIGH, 0.1: LOW, 0.5: MEAN}, {}, QUANTILES),
        ({"q0.1": LOW, "q0.5": MEAN, "q0.9": HIGH}, {}, QUANTILES),
        (DRAWS, {}, SAMPLES),
        (DRAWS, {"coverage": 0.9}, SAMPLES),
        (DRAWS.T, {}, SAMPLES),
        (list(DRAWS.T), {}, SAMPLES),
        (DRAWS[:, None, :], {}, SAMPLES),
        (DRAWS.T[:, :, None], {}, SAMPLES),
        (stats.norm(MEAN, SD), {}, NORMAL),
        ([NORMAL], {}, NORMAL),
    ],
)
def test_what_is_given_equals_what_its_constructor_makes(
    value: Any, said: dict[str, Any], expected: Any
) -> None:
    same(read(value, **said), expected)


@pytest.mark.parametrize("value", [MEAN, MEAN[:, None], MEAN.tolist(), MEAN.astype("O")])
@pytest.mark.parametrize("said", [{}, {"coverage": 0.9}])
def test_one_number_a_row_is_the_point_forecast(value: Any, said: dict[str, Any]) -> None:
    found = read(value, **said)
    assert found.predictions == ()
    np.testing.assert_array_equal(found.point, MEAN)
    assert found.notes[0].endswith("read as the point forecast")


def test_a_point_forecast_beside_intervals_is_kept() -> None:
    same(read((MEAN, ENDS), coverage=[0.8, 0.95]), BOTH, MEAN)
    same(read((MEAN[:, None], ENDS[:, :, :1]), coverage=0.9), INTERVALS, MEAN)
    same(read((MEAN, TABLE[:, [0, 2]]), coverage=0.9), INTERVALS, MEAN)
    same(read((MEAN, TABLE), levels=LEVELS), QUANTILES, MEAN)
    named = {"pred": MEAN, "lower_90": LOW, "upper_90": HIGH}
    same(read(named), INTERVALS, MEAN)


@pytest.mark.parametrize(
    ("value", "said", "match"),
    [
        ((LOW, HIGH + 9), {}, r"may be \(lower, upper\) or \(mean, sd\): pass coverage=0.9.*norm"),
        ((LOW - 9, HIGH - 9), {}, r"can only be \(lower, upper\).*coverage=0.9"),
        ((HIGH - 9, LOW - 9), {}, r"must be \(lower, upper\) or \(mean, sd\), but the first"),
        (
            (np.where(np.arange(N) == 4, HIGH + 8, LOW), HIGH + 7),
            {},
            r"exceeds the second in 1 rows \(first at row 4\)",
        ),
        ((MEAN, SD), {"coverage": 0.9}, r"crossed intervals.*howsure.Distribution.normal\(mean"),
        ((HIGH, LOW), {"coverage": 0.9}, "lower and upper look swapped"),
        ((LOW, HIGH), {"coverage": [0.8, 0.9]}, "coverage must be one number for one pair"),
        ((LOW, HIGH), {"coverage": 90}, r"got 90; did you mean 0\.9\?"),
        ((LOW, HIGH), {"levels": [0.1]}, r"must have shape \(60, 1\) or \(1, 60\)"),
        ((LOW, HIGH[1:]), {"coverage": 0.9}, r"prediction\[1\] must have 60 rows.*\(59,\)"),
        ((HOLED, HIGH), {"coverage": 0.9}, r"prediction must contain no missing.*row 3"),
        ((HOLED, HIGH), {}, r"prediction\[0\] must contain no missing values"),
        (
            TABLE[:, [0, 2]],
            {},
            r"\(60, 2\) may be intervals, two quantiles or two samples: pass cov",
        ),
        (TABLE[:, [0, 2]], {}, r"levels=\[0.05, 0.95\], or give howsure.Samples\(prediction\)"),
        (TABLE[:, [0, 2]].T, {}, r"shape \(2, 60\).*howsure.Samples\(prediction.T\)"),
        (TABLE[:, [0, 2]], {"coverage": [0.8, 0.9]}, "coverage must be one number"),
        (
            ENDS,
            {},
            r"\(60, 2, 2\) contains interval ends at 2 coverages.*coverage=\[0.8, 0.9\], got none",
        ),
        (ENDS, {"coverage": 0.9}, "at 2 coverages: pass them in the same order.*got 1"),
        (ENDS, {"levels": [0.1, 0.9]}, "pass coverage=, not levels="),
        (ENDS[:, ::-1], {"coverage": [0.8, 0.9]}, "lower and upper look swapped"),
        ((MEAN, ENDS), {}, r"prediction\[1\] of shape \(60, 2, 2\) contains interval ends"),
        ((ENDS[:, 0], ENDS[:, 1]), {}, r"two arrays of shape \(60, 2\) contains interval ends"),
        ((ENDS[:, 0], MEAN), {"coverage": 0.9}, r"must be \(lower, upper\), \(mean, sd\) or"),
        (
            TABLE,
            {},
            r"columns in the same order in nearly every row.*levels=\[…\] with 3"
            r".*Samples\(prediction\)",
        ),
        (TABLE[:, [1, 0, 2]], {}, "columns in the same order in nearly every row"),
        (NEARLY_ORDERED[:, :3], {}, r"columns in the same order in nearly every row"),
        (NEARLY_ORDERED[:, :9], {}, r"columns in the same order in nearly every row"),
        (NEARLY_ORDERED, {}, r"columns in the same order in nearly every row.*with 99 levels"),
        (
            np.column_stack([MEAN - 3.0, SD / 10, SD]),
            {},
            r"\(60, 3\) may be samples, quantiles, or a mean and its variances.*\.normal\(",
        ),
        (DRAWS[:, :4], {}, r"\(60, 4\) may be samples.*howsure.Samples\(prediction\)"),
        (TABLE.T, {}, r"Samples\(prediction.T\)"),
        ((MEAN, LOW, HIGH), {}, r"of 3 arrays may be quantiles or samples: pass levels=\[…\]"),
        (TABLE, {"levels": [0.1, 0.9]}, r"must have shape \(60, 2\) or \(2, 60\).*got \(60, 3\)"),
        (TABLE, {"levels": [10, 50, 90]}, r"did you mean 0\.1, 0\.5, 0\.9\?"),
        (TABLE, {"levels": [0.5, 0.5, 0.9]}, "levels must increase strictly"),
        (
            TABLE[:, ::-1],
            {"levels": LEVELS},
            r"prediction: quantiles must increase.*levels\[::-1\]",
        ),
        (CROSSED, {"levels": LEVELS}, "crossing='sort'"),
        (TABLE[:, :1].T, {}, "cannot be interpreted with 60 rows"),
        (
            np.zeros((7, 9)),
            {},
            r"shape \(7, 9\) cannot be interpreted.*\(60,\).*\(60, 2\).*levels.*\(60, m\)",
        ),
        (DRAWS[None], {}, r"shape \(1, 60, 20\) cannot be interpreted"),
        (MEAN[1:], {}, r"shape \(59,\) cannot be interpreted"),
        (
            np.resize(DRAWS, (N, N)),
            {},
            r"Samples\(prediction\) with one row per y.*prediction.T",
        ),
        (DRAWS > 3, {}, r"got booleans.*howsure.LabelSets\(prediction, coverage=0.9\)"),
        (np.where(DRAWS > 5, np.nan, DRAWS), {}, "prediction must contain finite numbers"),
        (np.where(DRAWS > 5, np.inf, DRAWS), {}, "prediction must contain finite numbers"),
        (HOLED, {}, r"prediction must contain finite numbers, got 1 .*row 3"),
        (1.5, {}, "got one number"),
        ("ridge", {}, "prediction must be an array of numbers.*got str"),
        (object(), {}, "got object"),
        ([[1.0, 2.0], [3.0]], {}, "must be one rectangular array"),
        ((MEAN, SAMPLES), {}, "must contain only predictions.*ndarray.*point="),
        (SAMPLES, {"levels": 0.5}, "levels are for plain arrays"),
    ],
)
def test_what_leaves_doubt_is_refused_with_what_settles_it(
    value: Any, said: dict[str, Any], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        read_given(value, n=N, **said)


def test_swapped_ends_are_not_read_as_means_and_sds() -> None:
    with pytest.raises(InputError, match=r"\(mean, sd\) or \(upper, lower\).* in 60 of 60 rows"):
        read((HIGH + 9, LOW + 9), y=MEAN + 9)
    upper = np.where(np.arange(N) == 3, LOW - 1.0, HIGH) + 9
    with pytest.raises(InputError, match=r"\(mean, sd\) or \(upper, lower\).* in 59 of 60 rows"):
        read((upper, LOW + 9), y=MEAN + 9)
    y = MEAN + 9 + child(0, "swapped").normal(size=N)
    same(read((MEAN + 9, SD), y=y), Distribution.normal(MEAN + 9, SD))


@pytest.mark.parametrize(
    ("value", "said", "match"),
    [
        ({}, {}, "but is empty"),
        ({0.5: MEAN, "a": MEAN}, {}, "only numbers .* or only text .* as keys.*0.5 and 'a'"),
        ({0.1: LOW, 0.9: HIGH[1:]}, {}, r"prediction\[0.9\] must have 60 rows"),
        ({0.1: LOW, 0.9: HIGH}, {"levels": [0.2, 0.9]}, "omit levels"),
        ({0.1: HIGH, 0.9: LOW}, {}, "prediction: quantiles must increase"),
        (
            {"lower": LOW, "upper": HIGH},
            {},
            "interval ends of unknown coverage: pass coverage=0.9",
        ),
        (
            {"lower_90": LOW, "upper_90": HIGH},
            {"coverage": 0.8},
            "names .* imply a coverage of 0.9",
        ),
        ({"lower_90": LOW, "mean": MEAN}, {}, "the other end is missing"),
        (
            {"lower_90": LOW, "upper_90": HIGH, "ridge": MEAN},
            {},
            r"columns of one model \('lower_90', 'upper_90'\) and others \('ridge'\).*'name': {'l",
        ),
        (
            {"lower": LOW, "upper": HIGH, "forest": DRAWS},
            {"coverage": 0.9},
            r"prediction\['lower'\] is named like an interval end, but there are also models",
        ),
        (
            {"a": LOW, "b": MEAN, "c": HIGH},
            {"coverage": 0.9},
            "'a', 'b', 'c' may be interval ends or point forecasts .*'lower' and 'upper'",
        ),
        ({"y": MEAN, "ridge": MEAN}, {}, r"has a column of y, 'y'.*howsure.assess\(table\)"),
        ({"q05": LOW, "q95": HIGH}, {"levels": [0.1, 0.9]}, "levels are for plain arrays"),
        ({"mean": HOLED, "sd": SD}, {}, r"prediction\['mean'\] must contain no missing.*row 3"),
        ({"mean": MEAN[1:], "sd": SD[1:]}, {}, "must have 60 rows like y, got 59"),
        ({"a": MEAN, "b": ENDS}, {}, r"prediction\['b'\] of shape \(60, 2, 2\)"),
        ({"a": MEAN, "b": "text"}, {}, r"prediction\['b'\] must be an array"),
    ],
)
def test_a_mapping_that_leaves_doubt_is_refused(
    value: Any, said: dict[str, Any], match: str
) -> None:
    with pytest.raises(InputError, match=match):
        read_given(value, n=N, **said)


def test_a_mapping_of_other_names_holds_models() -> None:
    found = read_given(
        {
            "pred": MEAN,
            "yhat": LOW,
            "pair": (LOW, HIGH),
            "law": {"mean": MEAN, "sd": SD},
            "levels": {0.1: LOW, 0.9: HIGH},
            "kind": SAMPLES,
        },
        n=N,
        coverage=0.9,
    )
    assert list(found) == ["pred", "yhat", "pair", "law", "levels", "kind"]
    np.testing.assert_array_equal(found["yhat"].point, LOW)
    same(found["pair"], INTERVALS)
    same(found["law"], NORMAL)
    same(found["levels"], Quantiles([0.1, 0.9], TABLE[:, [0, 2]]))
    same(found["kind"], SAMPLES)
    assert found["law"].notes[0].startswith("keys of prediction['law'] read as: mean")
    assert list(read_given({"lower_90": NORMAL, "upper_90": NORMAL}, n=N)) == [
        "lower_90",
        "upper_90",
    ]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_and_series(library: str) -> None:
    lib = needs(library)
    named = {"lower_90": LOW, "upper_90": HIGH}
    same(read(lib.DataFrame(named)), INTERVALS)
    same(read(lib.DataFrame({"mean": MEAN, "sd": SD})), NORMAL)
    same(read(lib.DataFrame({"a": LOW, "b": HIGH}), coverage=0.9), INTERVALS)
    same(read(lib.DataFrame({"a": LOW, "b": MEAN, "c": HIGH}), levels=LEVELS), QUANTILES)
    same(read(lib.DataFrame(DRAWS)), SAMPLES)
    same(read((lib.Series(LOW), lib.Series(HIGH)), coverage=0.9), INTERVALS)
    for value in (lib.Series(MEAN), lib.DataFrame({"ridge": MEAN})):
        np.testing.assert_array_equal(read(value).point, MEAN)
    for held, match in (
        (
            {"a": LOW, "b": HIGH},
            "has the columns 'a', 'b', whose names are not recognised.*lower_90",
        ),
        ({"pred": MEAN, "id": MEAN}, "has the columns 'pred', 'id'"),
        ({"y": MEAN, "pred": MEAN}, "has a column of y"),
        (
            {"mean": MEAN, "sd": SD, "ds": MEAN},
            r"of one model \('mean', 'sd'\) and others \('ds'\)",
        ),
    ):
        with pytest.raises(InputError, match=match):
            read_given(lib.DataFrame(held), n=N)


def test_a_lazy_frame_and_levels_as_columns() -> None:
    pl, pd = needs("polars"), needs("pandas")
    same(read(pl.DataFrame({"mean": MEAN, "sd": SD}).lazy()), NORMAL)
    same(read(pd.DataFrame({0.9: HIGH, 0.1: LOW, 0.5: MEAN})), QUANTILES)


def test_tensors_that_require_gradients() -> None:
    torch = needs("torch")

    def tensor(values: Any) -> Any:
        return torch.tensor(values, requires_grad=True)

    same(read((tensor(MEAN), tensor(SD))), NORMAL)
    same(read([tensor(row) for row in DRAWS.T]), SAMPLES)
    same(read({"mean": tensor(MEAN), "sd": tensor(SD)}), NORMAL)
    same(read({0.1: tensor(LOW), 0.5: tensor(MEAN), 0.9: tensor(HIGH)}), QUANTILES)
    result = howsure.assess(tensor(MEAN), tensor(DRAWS), options=howsure.Options(trials=False))
    assert result.facts["Reading"] == "prediction of shape (60, 20) read as 20 samples per row"


@pytest.mark.parametrize(
    ("value", "said", "note"),
    [
        (DRAWS.T, {}, "prediction of shape (20, 60) read as 20 samples per row"),
        ((MEAN, SD), {}, "prediction of two arrays read as (mean, sd) of normal distributions"),
        (
            {"mean": MEAN, "sd": SD},
            {},
            "keys of prediction read as: mean mean of a normal distribution",
        ),
        ((LOW, HIGH), {"coverage": 0.9}, ""),
        (TABLE, {"levels": LEVELS}, ""),
        ({0.1: LOW, 0.9: HIGH}, {}, ""),
        (SAMPLES, {}, ""),
    ],
)
def test_what_was_inferred_is_told_and_what_was_said_is_not(
    value: Any, said: dict[str, Any], note: str
) -> None:
    notes = read(value, **said).notes
    assert "; ".join(notes).startswith(note)
    assert bool(notes) == bool(note)


def test_two_arrays_without_a_finite_number_are_ends() -> None:
    ends = np.full(60, -np.inf), np.full(60, np.inf)
    found = howsure.assess(MEAN, ends, coverage=0.9, options=howsure.Options(trials=False))
    assert found.answer.sentence == "No. Intervals have no bounds."


@examples(50)
@given(st.permutations(range(4)), st.booleans(), st.integers(5, 12))
def test_neither_the_order_of_levels_nor_the_way_a_table_lies_matters(
    order: list[int], turned: bool, n: int
) -> None:
    table = np.sort(child(0, "levels", n).normal(size=(n, 4)), axis=1)
    levels = np.array([0.1, 0.3, 0.6, 0.95])
    moved = table[:, order]
    expected = Quantiles(levels, table)
    same(read(moved.T if turned else moved, n, levels=levels[order]), expected)
    same(read({float(levels[k]): table[:, k] for k in order}, n), expected)


@examples(50)
@given(st.integers(10, 20), st.integers(3, 9), st.booleans())
def test_samples_lie_either_way_unless_that_cannot_be_told(n: int, m: int, turned: bool) -> None:
    draws = child(0, "draws", n, m).normal(size=(n, m))
    value = draws.T if turned else draws
    if m < 5:
        with pytest.raises(InputError, match=r"howsure.Samples\("):
            read_given(value, n=n)
    else:
        same(read(value, n), Samples(draws))


def test_paths_and_counts_that_are_mostly_0_are_samples() -> None:
    paths = child(0, "paths").normal(size=(48, 100)).cumsum(axis=0)
    same(read(paths, 48), Samples(paths))
    counts = child(0, "counts").poisson(0.02, size=(400, 20)).astype(float)
    same(read(counts, 400), Samples(counts))


@examples(100)
@given(
    st.lists(st.integers(0, 4), min_size=0, max_size=4),
    st.integers(0, 4),
    st.sampled_from([None, 0.9, [0.8, 0.9]]),
    st.sampled_from([None, 0.5, [0.1, 0.9]]),
)
def test_every_shape_is_read_or_refused(
    shape: list[int], n: int, coverage: Any, levels: Any
) -> None:
    value = child(0, "any", *shape).normal(size=shape)
    with suppress(InputError):
        found = read(value, n, coverage=coverage, levels=levels)
        assert found.predictions or found.point is not None
        assert {made.n for made in found.predictions} <= {n}
        assert {len(made) for made in (found.point,) if made is not None} <= {n}


class _Model:
    """What has predict alone."""

    def predict(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("value", "said", "match"),
    [
        ((MEAN, 0.5), {}, r"prediction\[1\] must have 60 .*Distribution\.normal\(mean, 0\.5\)$"),
        ([_Model(), _Model()], {}, r"got 2 models: use howsure\.assess_model\(prediction, X, y\)$"),
        ([stats.norm(0, 1)] * N, {}, r"such as stats\.norm\(mean, sd\), got 60 distributions"),
        ({0.9: (LOW, HIGH)}, {}, r"prediction\[0\.9\] must be one array.*coverage=0\.9$"),
        ({"a": MEAN, "b": None}, {}, r"prediction\['b'\] must be a prediction, got None"),
        ({5: LOW, 95: HIGH}, {}, r"did you mean 0\.05, 0\.95\?.* names of models are text$"),
    ],
)
def test_what_has_another_spelling_is_told_it(value: Any, said: Any, match: str) -> None:
    with pytest.raises(InputError, match=match):
        read(value, **said)


def test_a_frame_with_a_model_a_column_is_told_its_spelling() -> None:
    pd = needs("pandas")
    frame = pd.DataFrame({"ridge": MEAN, "forest": LOW})
    with pytest.raises(InputError, match=r"\{c: prediction\[c\] for c in prediction\.columns\}"):
        read(frame)
    found = read_given({c: frame[c] for c in frame.columns}, n=N)
    assert list(found) == ["ridge", "forest"]


def test_many_columns_are_noted_by_the_first() -> None:
    (note,) = read({f"s_{j}": DRAWS[:, j] for j in range(20)}).notes
    assert note.endswith("s_8 sample and 11 more")


def test_laws_of_moved_rows_are_refused() -> None:
    pd = needs("pandas")
    y = pd.Series(MEAN)
    moved = y.iloc[::-1]
    for law in (stats.norm(moved, 1.0), stats.norm(loc=moved, scale=1.0)):
        with pytest.raises(InputError, match=r"prediction\.(args\[0\]|kwds\['loc'\]) must have"):
            check_row_order(y, {"prediction": law})


NIXTLA = {
    f"{model}{end}": values
    for model in ("LGBM", "ETS")
    for end, values in (("", MEAN), ("-lo-90", LOW), ("-hi-90", HIGH))
}


def test_columns_named_after_several_models_are_those_models() -> None:
    pd = needs("pandas")
    for value in (NIXTLA, pd.DataFrame(NIXTLA)):
        found = read_given(value, n=N)
        assert list(found) == ["LGBM", "ETS"]
        same(found["ETS"], INTERVALS, MEAN)
    wide = {f"{model}_{part}": v for model in "ab" for part, v in (("mean", MEAN), ("sd", SD))}
    assert list(read_given(wide, n=N)) == ["a", "b"]
    same(read_given(pd.DataFrame(wide), n=N)["b"], NORMAL)


def test_two_arrays_by_name_at_a_coverage_are_not_two_point_forecasts() -> None:
    for held in ({"low": LOW, "up": HIGH}, {"start": LOW, "end": HIGH}):
        with pytest.raises(InputError, match=r"name them 'lower' and 'upper'"):
            read_given(held, n=N, coverage=0.9)
        assert len(read_given(held, n=N)) == 2
    same(read({"lower": LOW, "upper": HIGH}, coverage=0.9), INTERVALS)
    assert len(read_given({"a": MEAN, "b": DRAWS}, n=N, coverage=0.9)) == 2


def test_three_arrays_at_a_coverage_are_told_where_the_point_goes() -> None:
    for value in ((MEAN, LOW, HIGH), [MEAN, LOW, HIGH], TABLE):
        with pytest.raises(InputError, match=r"give \(lower, upper\) and .*point=point\)"):
            read_given(value, n=N, coverage=0.9)
    same(read((MEAN, (LOW, HIGH)), coverage=0.9), INTERVALS, MEAN)


def _truths(n: int, center: float, spread: float) -> tuple[np.ndarray, dict[str, Any]]:
    """y, and what a perfect normal model of it may be given as, by kind."""
    rng = child(0, "truths", n, round(center * 100), round(spread * 100))
    mean = center + 0.3 * rng.normal(size=n)
    sd = np.full(n, spread)
    y = mean + sd * rng.normal(size=n)
    lower, upper = mean - 1.645 * sd, mean + 1.645 * sd
    draws = mean[:, None] + sd[:, None] * rng.normal(size=(n, 7))
    return y, {
        "Distribution": (mean, sd),
        "Intervals": (lower, upper),
        "Quantiles": (lower, mean, upper),
        "Samples": tuple(draws.T),
        "point": (mean,),
    }


FORMS = {
    "tuple": tuple,
    "list": list,
    "lists": lambda parts: [part.tolist() for part in parts],
    "columns": np.column_stack,
    "rows": np.stack,
    "nested": lambda parts: np.stack(parts).tolist(),
}
SAID = [
    {},
    {"coverage": 0.9},
    {"coverage": [0.5, 0.9]},
    {"levels": [0.05, 0.95]},
    {"levels": [0.05, 0.5, 0.95]},
    {"levels": [0.05, 0.95], "coverage": 0.9},
]


@pytest.mark.parametrize("said", SAID, ids=str)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 40, 500])
def test_a_bare_form_is_never_read_as_another_kind_without_a_word(
    n: int, form: str, said: dict[str, Any]
) -> None:
    """Whatever its centre and spread: read as what it is, refused, or named in a note."""
    for center, spread in [(0, 1), (0, 0.1), (0.5, 1), (5, 1), (-5, 1), (0, 50), (20, 0.1)]:
        y, truths = _truths(n, center, spread)
        for truth, parts in truths.items():
            if "levels" in said and truth in ("Distribution", "Samples", "point"):
                continue  # whoever names levels has quantiles
            try:
                found = read(FORMS[form](parts), n, y=y, **said)
            except InputError:
                continue
            kinds = {type(made).__name__ for made in found.predictions} or {"point"}
            fits = {truth, "Quantiles"} if "levels" in said else {truth}
            assert kinds <= fits or found.notes, (truth, kinds, center, spread)
            if truth == "Distribution" and n >= 40 and center > -5:  # enough of y to tell
                assert kinds == {truth}, (kinds, center, spread)


@pytest.mark.parametrize("form", ["tuple", "columns", "rows"])
@pytest.mark.parametrize("center", [0.0, -0.4, -0.8, -5.0])
def test_means_and_sds_at_a_coverage_are_not_read_as_ends(form: str, center: float) -> None:
    y, truths = _truths(500, center, 1.0)
    for part in range(0, 500, 50):  # where y lies below a far sd, it is half above its mean
        rows = slice(part, part + 50)
        held = FORMS[form]([each[rows] for each in truths["Distribution"]])
        with pytest.raises(InputError, match=r"may be \(lower, upper\) or \(mean, sd\).*y is b"):
            read(held, 50, y=y[rows], coverage=0.9)
        held = FORMS[form]([each[rows] * (np.arange(50) != 7) for each in truths["Distribution"]])
        with pytest.raises(InputError, match=r"may be \(lower, upper\) or \(mean, sd\).*y is b"):
            read(held, 50, y=y[rows], coverage=0.9)


def test_positive_ends_are_read_as_ends_with_a_note_where_rows_are_too_few_to_tell() -> None:
    y, truths = _truths(500, 3.0, 1.0)
    found = read(truths["Intervals"], 500, y=y, coverage=0.9)
    same(found, Intervals(*truths["Intervals"], 0.9))
    assert not found.notes
    few = [part[:3] for part in truths["Intervals"]]
    found = read(tuple(few), 3, y=y[:3], coverage=0.9)
    same(found, Intervals(*few, 0.9))
    assert found.notes[0].startswith(
        "prediction read as (lower, upper), not (mean, sd), because y is"
    )


def test_two_rows_of_ends_are_read_the_only_way_that_rises() -> None:
    lower, upper = np.array([5.0, 0.0]), np.array([6.0, 2.0])
    for value in (np.stack([lower, upper]), np.column_stack([lower, upper])):
        same(read(value, 2, coverage=0.9), Intervals(lower, upper, 0.9))
    with pytest.raises(InputError, match=r"\(2, 2\) may have the ends in rows or in columns"):
        read([[0.0, 1.0], [2.0, 3.0]], 2, coverage=0.9)


def test_narrow_ends_of_positive_numbers_are_read_as_ends() -> None:
    """Counts whose intervals cover 44 % of them: too narrow, and still no means and sds."""
    rng = child(0, "narrow")
    middle = rng.gamma(2.0, 100.0, size=800) + 60.0
    y = np.maximum(middle + 100.0 * rng.normal(size=800), 0.0)
    lower, upper = middle - 58.0, middle + 58.0
    assert 0.40 < ((lower <= y) & (y <= upper)).mean() < 0.50
    same(read((lower, upper), 800, y=y, coverage=0.9), Intervals(lower, upper, 0.9))


@pytest.mark.parametrize("coverage", [None, 0.9])
@pytest.mark.parametrize("forecast", ["mean", "pred"])
@pytest.mark.parametrize("spread", ["variance", "yhat_std", "predictVar", "uncertainty_total"])
@pytest.mark.parametrize("frame", [False, True])
def test_a_forecast_beside_its_spread_is_not_read_as_two_models_or_two_ends(
    frame: bool, spread: str, forecast: str, coverage: float | None
) -> None:
    value: Any = {forecast: MEAN, spread: np.full(N, 30.0)}
    if frame:
        value = pa.table(value)
    with pytest.raises(InputError, match=f"prediction\\['{spread}'\\] may be an uncertainty: name"):
        read_given(value, n=N, coverage=coverage, y=MEAN)


def test_models_may_be_called_as_a_spread_or_an_end_is() -> None:
    for names in (["VAR", "ARIMA"], ["min_leaf_5", "max_depth_3"]):
        assert list(read_given(dict.fromkeys(names, MEAN), n=N)) == names


@pytest.mark.parametrize("share", [0.2, 1.0, 2.5])
@pytest.mark.parametrize("bias", [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
def test_wrong_means_and_sds_are_not_read_as_ends_without_a_word(bias: float, share: float) -> None:
    y, truths = _truths(500, 0.0, 1.0)
    mean, sd = truths["Distribution"]
    sd = share * sd
    mean = np.minimum(mean + bias * share, sd)
    try:
        found = read((mean, sd), 500, y=y, coverage=0.9)
    except InputError:
        return
    if ((mean <= y) & (y <= sd)).mean() <= 0.75:  # as ends they would not be far off
        assert "read as (lower, upper), not (mean, sd)" in found.notes[0]


def test_few_rows_of_means_and_sds_are_never_read_as_ends_without_a_word() -> None:
    """Below a far sd, y lies above its mean by a coin's toss: in 7 of 8 rows or more at times."""
    rng = child(0, "few rows of moments")
    for n in (8, 9, 12, 20):
        for _ in range(300):
            y = rng.normal(size=n) - 5.0
            try:
                found = read((np.full(n, -5.0), np.ones(n)), n, y=y, coverage=0.9)
            except InputError:
                continue
            assert found.notes


def test_results_of_statsmodels_name_the_frame_to_give() -> None:
    api = needs("statsmodels.api")
    x = np.linspace(0.0, 1.0, 20)
    fit = api.OLS(x + np.cos(9 * x), api.add_constant(x)).fit()
    with pytest.raises(InputError, match=r"got PredictionRes.*: give prediction.summary_frame\(\)"):
        read_given(fit.get_prediction(), n=20)
    with pytest.raises(InputError, match=r"give prediction.get_prediction\(X\).summary_frame\(\)"):
        read_given(fit, n=20)


def test_forecasts_of_prophet_stand_in_the_order_of_y() -> None:
    pd = needs("pandas")
    days = pd.date_range("2024-01-01", periods=5)
    frame = pd.DataFrame({"ds": days, "yhat": 1.0, "yhat_lower": 0.0, "yhat_upper": 2.0})
    y = pd.Series(np.arange(5.0), index=days)
    check_row_order(y, {"prediction": frame})
    check_row_order(y.reset_index(drop=True), {"prediction": frame})
    check_row_order(y.iloc[:3], {"prediction": frame})  # of unequal lengths another rule tells
    rule = r"prediction\['ds'\] must contain the times of y's index in the same order; row 0"
    with pytest.raises(InputError, match=rf"{rule} has .* and y has 2024-01-05"):
        check_row_order(y.iloc[::-1], {"prediction": frame})
    later = y.set_axis(days + pd.Timedelta(days=5))
    with pytest.raises(InputError, match=rule):
        check_row_order(later, {"prediction": frame})


def test_a_frame_in_place_of_y_is_told_by_its_columns() -> None:
    pd = needs("pandas")
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=5), "y": 1.0})
    with pytest.raises(
        InputError, match="y must contain real numbers, got a data frame of columns"
    ):
        howsure.assess(frame, np.ones(5))
