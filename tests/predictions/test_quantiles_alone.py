"""One quantile alone is judged by the share of y on its side; levels 0 and 1 bound y."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs.names import quantile_levels
from howsure.predictions.columns import to_columns
from howsure.streaming import Large, load_parts

pd = needs("pandas")
N = 2000
CENTRE = child(0, "alone, centres").normal(size=N)
Y = CENTRE + child(1, "alone, errors").normal(size=N)


def quantiles(levels: Any, off: float = 0.0) -> Any:
    return CENTRE[:, None] + off + stats.norm.ppf(np.atleast_1d(levels))[None, :]


def coverage_of(made: Any) -> Any:
    (found,) = [each for each in made.findings if each.id == "coverage"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.02, 0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("off", [0.0, -0.5, 0.5])
def test_its_share_of_y_is_judged(level: float, off: float) -> None:
    table = quantiles(level, off)
    made = howsure.assess(Y, table[:, 0], levels=level, options=howsure.Options(trials=False))
    below = (table[:, 0] >= Y) if level >= 0.5 else (table[:, 0] <= Y)
    claim = max(level, 1.0 - level)
    assert made.value("empirical_coverage") == pytest.approx(below.mean())
    found = coverage_of(made)
    assert found.effect == pytest.approx(below.mean() - claim)
    assert (found.state == "bad") == (off != 0.0)
    side = "at or below" if level >= 0.5 else "at or above"
    assert f"of y are {side} the {level:g} quantile, expected" in found.sentence
    assert off == 0.0 or f"the quantile is too {'low' if off < 0 else 'high'}, by" in found.sentence
    assert all(np.isfinite(r.value) or np.isnan(r.value) for r in made.records)


def test_several_on_one_side_are_judged_together() -> None:
    levels = [0.8, 0.9, 0.95]
    table = quantiles(levels)
    table[:, 2] -= 0.3
    found = coverage_of(
        howsure.assess(Y, table, levels=levels, options=howsure.Options(trials=False))
    )
    assert "the 0.95 quantile" in found.sentence
    assert found.state == "bad"


def test_a_right_one_is_seldom_condemned() -> None:
    rng = child(0, "alone, right")
    bad = sum(
        coverage_of(
            howsure.assess(
                rng.normal(size=60),
                np.full(60, 0.84162),
                levels=0.8,
                options=howsure.Options(trials=False),
            )
        ).state
        == "bad"
        for _ in range(40)
    )
    assert bad <= stats.binom.ppf(0.999, 40, 0.05)


@pytest.mark.parametrize(
    ("names", "levels"),
    [
        (["q0", "q0.5", "q1"], [0, 0.5, 1]),
        (["q0.0", "q0.5", "q1.0"], [0, 0.5, 1]),
        (["q0", "q25", "q50", "q75", "q100"], [0, 0.25, 0.5, 0.75, 1]),
        (["0%", "50%", "100%"], [0, 0.5, 1]),
        (["q2.5", "q97.5", "q100"], [0.025, 0.975, 1]),
        (["p0", "p10", "p90"], [0, 0.1, 0.9]),
    ],
)
def test_names_of_bounds(names: list[str], levels: list[float]) -> None:
    assert list(quantile_levels(names).values()) == levels


BOUNDED = np.column_stack([CENTRE - 2.5, quantiles([0.05, 0.5, 0.95]), CENTRE + 2.5])
LEVELS = [0, 0.05, 0.5, 0.95, 1]
NAMES = ["q0", "q0.05", "q0.5", "q0.95", "q1"]


def _long() -> pd.DataFrame:
    rows = np.repeat(np.arange(N), 5)
    held = {"row": rows, "y": Y[rows], "quantile_level": np.tile(LEVELS, N)}
    return pd.DataFrame({**held, "value": BOUNDED.ravel()})


GIVEN: Any = {
    "names": lambda: howsure.load(pd.DataFrame(BOUNDED, columns=NAMES).assign(y=Y)),
    "a keyword": lambda: howsure.load(
        pd.DataFrame(BOUNDED, columns=list("abcde")).assign(y=Y),
        quantiles=dict(zip(LEVELS, "abcde", strict=True)),
    ),
    "a flag": lambda: howsure.load(
        pd.DataFrame(BOUNDED, columns=list("abcde")).assign(y=Y),
        quantiles=[f"{level}={name}" for level, name in zip(LEVELS, "abcde", strict=True)],
    ),
    "a long table": lambda: howsure.load(_long()),
}


@pytest.mark.parametrize("way", GIVEN)
def test_levels_0_and_1_are_read_as_bounds(way: str) -> None:
    (held,) = GIVEN[way]().evalsets
    table: Any = held.predictions[0]
    assert table.levels.tolist() == [0.05, 0.5, 0.95]
    assert np.array_equal(table.bounds, BOUNDED[:, [0, -1]])
    assert np.array_equal(table.take(np.arange(3)).bounds, BOUNDED[:3, [0, -1]])
    again: Any = howsure.load(to_columns(held)).evalsets[0].predictions[0]
    assert np.array_equal(again.bounds, table.bounds)


def test_y_beyond_its_bounds_is_told() -> None:
    made = howsure.assess(Y, BOUNDED, levels=LEVELS, options=howsure.Options(trials=False))
    share = float((np.abs(Y - CENTRE) > 2.5).mean())
    assert made.value("impossible_share") == pytest.approx(share)
    assert "support" in {each.id for each in made.findings}
    inside = np.clip(Y, BOUNDED[:, 0], BOUNDED[:, -1])
    kept = howsure.assess(inside, BOUNDED, levels=LEVELS, options=howsure.Options(trials=False))
    assert kept.value("impossible_share") == 0.0
    assert "support" not in {each.id for each in kept.findings}


def test_bounds_alone_and_crossed_ones_are_refused() -> None:
    with pytest.raises(InputError, match="must include one strictly between 0 and 1"):
        howsure.Quantiles([0, 1], BOUNDED[:, [0, -1]])
    with pytest.raises(InputError, match="quantiles must increase"):
        howsure.Quantiles([0, 0.5], BOUNDED[:, [-1, 2]])
    one: howsure.Quantiles = howsure.Quantiles([0, 0.5], BOUNDED[:, [0, 2]])
    assert one.bounds is not None
    assert np.isinf(one.bounds[:, 1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("columns", [NAMES, ["q0.95"]])
def test_parts_of_a_table_say_the_same(columns: list[str], tmp_path: Path) -> None:
    """Rows that are read some at a time; what has no end has no width there either."""
    table = pd.DataFrame(BOUNDED, columns=NAMES)[columns].assign(y=Y)
    pd.concat([table] * 8).to_csv(tmp_path / "t.csv", index=False)
    few = Large(memory=1_000_000, jobs=1)
    loaded = load_parts(tmp_path / "t.csv", large=few)
    assert loaded.totals
    made = howsure.assess(loaded, options=howsure.Options(trials=False))
    whole = howsure.assess(table, options=howsure.Options(trials=False))
    for name in ("empirical_coverage", "impossible_share", "mean_width", "interval_score"):
        assert made.value(name) == pytest.approx(whole.value(name), nan_ok=True)
