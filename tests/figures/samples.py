"""Synthetic records, curves and tables of the kinds that a report meets."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.records import Curve, Direction, Notion, Record, ResultTable
from howsure.engine.finding import State
from howsure.report.document import Document, GlossaryEntry, VerdictLine
from howsure.report.questions import STEP, document_of
from howsure.verdict import Finding
from howsure.verdict.findings import questions

LEVELS = np.linspace(0.0, 1.0, 41)


def calibration(model: str = "", bend: float = 0.25, name: str = "calibration") -> Curve:
    """A calibration curve that departs from the diagonal by `bend`."""
    half = 0.04 * np.sqrt(LEVELS * (1 - LEVELS)) * 2
    return Curve(
        name=name,
        x=LEVELS,
        y=LEVELS + bend * np.sin(2 * np.pi * LEVELS) / 3,
        lower=LEVELS - half,
        upper=LEVELS + half,
        reference=LEVELS,
        x_label="Nominal level",
        y_label="Observed share",
        band="95 % simultaneous band",
        model=model,
    )


def pit_ecdf(model: str = "") -> Curve:
    """ECDF of the PIT less the diagonal."""
    x = np.linspace(0, 1, 201)
    half = 0.05 * np.sqrt(x * (1 - x)) * 2
    return Curve(
        name="pit_ecdf",
        x=x,
        y=0.07 * np.sin(2 * np.pi * x),
        lower=-half,
        upper=half,
        reference=np.zeros_like(x),
        band="95 % simultaneous band",
        model=model,
        step=True,
    )


def pit_histogram(model: str = "") -> Curve:
    """Densities of the PIT in twenty bins."""
    x = (np.arange(20) + 0.5) / 20
    return Curve(
        name="pit_histogram",
        x=x,
        y=1 + 0.5 * np.cos(2 * np.pi * x),
        lower=np.full(20, 0.8),
        upper=np.full(20, 1.2),
        reference=np.ones(20),
        band="95 % band",
        model=model,
    )


def risk_coverage(model: str = "") -> tuple[Curve, Curve]:
    """A selective curve and its oracle."""
    x = np.linspace(0.01, 1, 60)
    told = Curve(
        name="risk_coverage",
        x=x,
        y=0.4 + 0.6 * x**0.8,
        reference=np.ones_like(x),
        x_label="Prediction rate",
        y_label="Mean |error| (MW)",
        model=model,
    )
    oracle = Curve(name="risk_coverage_oracle", x=x, y=0.02 + 0.98 * x**1.6, model=model)
    return told, oracle


def error_by_width(model: str = "") -> Curve:
    """Mean errors in ten bins of width."""
    x = np.linspace(1, 4, 10)
    y = 0.35 * x + 0.1 * np.sin(3 * x)
    return Curve(
        name="error_by_width",
        x=x,
        y=y,
        lower=y - 0.12,
        upper=y + 0.12,
        reference=0.36 * x,
        x_label="Mean width (MW)",
        y_label="Mean |error| (MW)",
        band="95 % interval",
        model=model,
    )


def rolling(model: str = "") -> Curve:
    """Coverage over two years."""
    x = 1.7e9 + np.arange(120) * 86400.0 * 6
    y = 0.9 - 0.08 * (np.arange(120) > 70) + 0.01 * np.sin(np.arange(120) / 4)
    return Curve(
        name="rolling_coverage",
        x=x,
        y=y,
        lower=y - 0.03,
        upper=y + 0.03,
        reference=np.full(120, 0.9),
        x_label="seconds since 1970",
        y_label="Empirical coverage",
        band="95 % band, 500 rows a window",
        model=model,
    )


def characteristic(model: str = "") -> tuple[Curve, Curve, ResultTable]:
    """A characteristics curve with a long tail, the constant band's, and three marks."""
    rng = np.random.default_rng(1)
    x = np.concatenate([[0.0], np.sort(rng.exponential(1.0, 400) ** 1.3)])
    y = np.linspace(1, 0, 401)
    curve = Curve(
        name="characteristic",
        x=x,
        y=y,
        x_label="bandwidth (MW)",
        y_label="miss rate",
        step=True,
        model=model,
        hover={"k": x / x[300]},
    )
    other = Curve(name="characteristic_constant", x=1.1 * x, y=y, step=True, model=model)
    names = ["as predicted", "miss rate 0.1", "least interval score at 0.9"]
    rows = [300, 360, 362]
    marks = ResultTable(
        name="characteristic_points",
        columns={
            "point": np.array(names, dtype=object),
            "k": x[rows] / x[300],
            "bandwidth": x[rows],
            "miss_rate": y[rows],
            "deficit": _shortfall(x)[rows],
        },
        model=model,
    )
    return curve, other, marks


def _shortfall(x: FloatArray) -> FloatArray:
    """Mean distance of the sample of `characteristic` to bands of each width."""
    return np.array([np.maximum(x - width, 0.0).mean() for width in x])


def deficit(model: str = "") -> tuple[Curve, Curve, Curve]:
    """The deficit of the same bands, the constant band's, and a line of equal interval score."""
    x = characteristic(model)[0].x
    y = _shortfall(x)
    curve = Curve(
        name="characteristic_deficit",
        x=x,
        y=y,
        x_label="bandwidth (MW)",
        y_label="deficit (MW)",
        model=model,
        hover={"k": x / x[300]},
    )
    constant = Curve(name="characteristic_deficit_constant", x=1.1 * x, y=y, model=model)
    least = float(np.min(x + 10 * y))
    isocost = Curve(
        name="characteristic_isocost",
        x=np.array([0.0, least]),
        y=np.array([least / 10, 0.0]),
        model=model,
        notes=f"along the line the interval score is {2 * least:.4g}.",
    )
    return curve, constant, isocost


def congruence(model: str = "", count: int = 150) -> tuple[ResultTable, ResultTable, ResultTable]:
    """A map of rows, the rows at its ends, and the leaves of a tree."""
    rng = np.random.default_rng(8)
    first, second = rng.normal(size=(2, count))
    cce = 0.004 + 0.05 / (1 + np.exp(-3 * (first - 1))) + 0.001 * rng.random(count)
    named = np.array([f"r{place}" for place in range(count)], dtype=object)
    order = np.argsort(-cce)
    ends = np.r_[order[:4], order[-4:]]
    return (
        ResultTable(
            name="cce_map",
            columns={
                "row": named,
                "first": first,
                "second": second,
                "cce": cce,
                "perfect": np.full(count, 0.007),
                "p_value": np.clip(rng.random(count), 0.01, 1),
            },
            labels={"first": "first principal coordinate", "cce": "CCE"},
            model=model,
            notes="The p-values are pointwise.",
        ),
        ResultTable(
            name="cce_rows",
            columns={
                "kind": np.array(["worst"] * 4 + ["best"] * 4, dtype=object),
                "row": named[ends],
                "cce": cce[ends],
                "wind_speed": first[ends],
            },
            model=model,
        ),
        ResultTable(
            name="cce_tree",
            columns={
                "where": np.array(
                    ["wind > 7.3", "wind ≤ 7.3, hour ≤ 10.5", "wind ≤ 7.3, hour > 10.5"],
                    dtype=object,
                ),
                "rows": np.array([20.0, 60.0, 70.0]),
                "cce": np.array([0.04, 0.012, 0.009]),
                "standard_error": np.array([0.002, 0.001, 0.0005]),
                "worse": np.array([True, False, False]),
                "cce_when_grown": np.array([0.041, 0.013, 0.008]),
            },
            model=model,
            notes="A shallow tree grown on half of the rows; cce is the mean on the other half.",
        ),
    )


def groups(count: int = 9, model: str = "", names: list[str] | None = None) -> ResultTable:
    """Coverage by group, two of them let down."""
    rng = np.random.default_rng(count)
    n = rng.integers(200, 3000, count).astype(float)
    cover = np.clip(0.9 + rng.normal(0, 0.006, count), 0, 1)
    cover[0], cover[-1] = 0.71, 0.97
    half = 2.5 * np.sqrt(cover * (1 - cover) / n)
    known = ["North", "South", "East", "West", "Upper Midlands", "Isles", "Coast", "Hills", "City"]
    labels = names or [known[i] if i < 9 else f"District {i}" for i in range(count)]
    return ResultTable(
        name="groups",
        columns={
            "grouping": np.array(["region"] * count, dtype=object),
            "group": np.array([f"region={label}" for label in labels], dtype=object),
            "n": n,
            "empirical_coverage": cover,
            "lower": cover - half,
            "upper": cover + half,
            "nominal": np.full(count, 0.9),
            "shortfall": 0.9 - cover,
            "p_value": rng.uniform(size=count),
        },
        model=model,
        notes="Bands hold for all groups at once; p-values are exact binomial, Holm-adjusted.",
    )


def coverage(model: str = "", levels: tuple[float, ...] = (0.9,)) -> ResultTable:
    """Coverage of all rows at some nominal coverages, each a little short."""
    nominal = np.array(levels)
    return ResultTable(
        name="coverage",
        columns={
            "n": np.full(len(levels), 2000.0),
            "empirical_coverage": nominal - 0.05,
            "lower": nominal - 0.07,
            "upper": nominal - 0.03,
            "claimed": nominal,
            "nominal": nominal,
        },
        model=model,
    )


def interval_rows(model: str = "", scale: float = 1.0, **more: object) -> ResultTable:
    """Twenty rows about predictions of very different size, every fifth outside."""
    point = 1000.0 * np.arange(20)
    half = scale * np.linspace(1.0, 3.0, 20)
    off = np.where(np.arange(20) % 5 == 0, 1.5 * half, 0.4 * half)
    columns = {
        "row": np.array([f"r{i}" for i in range(20)], dtype=object),
        "y": point + off,
        "point": point,
        "lower": point - half,
        "upper": point + half,
        "covered": np.where(off > half, "no", "yes").astype(object),
        "nominal": np.full(20, 0.9),
    }
    return ResultTable(name="intervals", columns={**columns, **more}, model=model)


def models(a: str = "boosted trees", b: str = "linear") -> ResultTable:
    """Paired differences in four measures."""
    return ResultTable(
        name="models",
        columns={
            "metric": np.array(["crps", "interval_score", "mae", "bias"], dtype=object),
            "model_a": np.array([a] * 4, dtype=object),
            "model_b": np.array([b] * 4, dtype=object),
            "difference": np.array([-0.13, -1.9, 0.002, 0.4]),
            "lower": np.array([-0.17, -2.6, -0.02, 0.1]),
            "upper": np.array([-0.09, -1.2, 0.024, 0.7]),
            "p_value": np.array([0.0001, 0.0001, 0.81, 0.01]),
            "direction": np.array(["lower is better"] * 4, dtype=object),
        },
        notes="Paired bootstrap, 2,000 resamples.",
    )


def worst_rows(count: int = 12, column: str = "station", value: str = "Aberdeen") -> ResultTable:
    """Rows that the model was most wrong about."""
    rng = np.random.default_rng(3)
    return ResultTable(
        name="worst_rows",
        columns={
            "row": np.arange(count) * 37 + 5,
            column: np.array([f"{value} {i}" for i in range(count)], dtype=object),
            "y": rng.normal(10, 5, count),
            "lower": rng.normal(4, 1, count),
            "upper": rng.normal(6, 1, count),
            "missed by": np.sort(rng.exponential(5, count))[::-1],
            "when": np.datetime64("2026-01-01") + np.arange(count),
        },
        notes="Rows that miss their interval by most, in interval widths.",
    )


def record(metric: str, value: float, error: float = math.nan, **more: object) -> Record:
    """A record whose interval follows from its error."""
    reach = 1.96 * error
    given = {"lower": value - reach, "upper": value + reach, "n": 12000.0, **more}
    return Record(metric=metric, value=value, standard_error=error, **given)


def records(model: str = "", values: FloatArray | None = None) -> tuple[Record, ...]:
    """A few records of every kind."""
    share = {"target": 0.9, "coverage": 0.9, "direction": Direction.TARGET, "source": "intervals"}
    low = {"direction": Direction.LOWER, "units": "MW", "model": model}
    return (
        record("empirical_coverage", 0.8312, 0.0034, model=model, **share),
        record("mean_width", 3.481, 0.0121, coverage=0.9, source="intervals", **low),
        record("interval_score", 6.213, 0.081, coverage=0.9, source="intervals", **low),
        record("crps", 0.7421, 0.0093, source="distribution", **low),
        record(
            "miscalibration_area",
            0.0731,
            0.0023,
            null=0.0054,
            target=0.0,
            direction=Direction.LOWER,
            model=model,
            options={"levels": 99.0},
        ),
        record("mae", 1.0312, 0.0121, **low),
        record(
            "kendall_tau",
            0.213,
            0.011,
            notion=Notion.LOCAL,
            direction=Direction.HIGHER,
            reason="on 20,000 rows drawn from all",
            model=model,
        ),
        Record(metric="log_score", value=math.nan, reason="no distribution was given", model=model),
        Record(
            metric="pinball",
            value=math.nan,
            coverage=0.99,
            reason="the level 0.995 lies beyond the quantiles given",
            model=model,
        ),
    )


def group_records(count: int) -> tuple[Record, ...]:
    """Coverage records of many groups."""
    rng = np.random.default_rng(5)
    return tuple(
        record(
            "empirical_coverage",
            float(np.clip(rng.normal(0.89, 0.03), 0, 1)),
            0.01,
            group=f"district={i}",
            target=0.9,
            coverage=0.9,
            notion=Notion.GROUP,
            direction=Direction.TARGET,
        )
        for i in range(count)
    )


def glossary() -> tuple[GlossaryEntry, ...]:
    """Entries for `records`."""
    cover, width = "Do the intervals have their nominal coverage?", "How wide are the intervals?"
    score, claim = "How good are the predictions, in one number?", "Do the probabilities come true?"
    told = [
        ("empirical_coverage", "Empirical coverage (PICP)", cover, "mean 1{l ≤ y ≤ u}"),
        ("mean_width", "Mean width", width, "mean (u − l)"),
        ("interval_score", "Interval score", score, "(u − l) + (2/α)(l − y)₊ + (2/α)(y − u)₊"),
        ("crps", "CRPS", score, "∫ (F(z) − 1{y ≤ z})² dz"),
        ("log_score", "Log score", score, "−log f(y)"),
        ("pinball", "Pinball loss", score, "(y − q)τ if y ≥ q, else (q − y)(1 − τ)"),
        ("miscalibration_area", "Miscalibration area", claim, "∫ |observed − nominal|"),
        ("kendall_tau", "Kendall τ-b", "Are widths related to errors?", "(C − D)/√…"),
        ("mae", "Mean absolute error", "How good is the point forecast?", "mean |y − ŷ|"),
    ]
    return tuple(
        GlossaryEntry(
            name=name,
            title=title,
            meaning="What the number tells, in a sentence that a reader can act on.",
            formula=formula,
            source="Gneiting and Raftery 2007, equation 43",
            direction="lower is better",
            notion="marginal",
            units="y",
            question=question,
        )
        for name, title, question, formula in told
    )


def finding(name: str, state: State, sentence: str, effect: float = 0.0) -> Finding:
    """What one question of the verdict showed."""
    asked = questions().get(name)
    return Finding(
        id=name,
        question="Which model is better?" if asked is None else asked.asked,
        state=state,
        effect=effect,
        unit="share" if asked is None else asked.unit,
        lower=effect - 0.01,
        upper=effect + 0.01,
        p=0.001,
        p_adjusted=0.01,
        tolerance=0.01,
        cost=math.nan,
        where="region=North" if name == "groups" else "",
        sentence=sentence,
    )


def findings() -> tuple[Finding, ...]:
    """Findings of every state."""
    return (
        finding(
            "coverage",
            "bad",
            "The 90 % intervals cover 83.1 % (82.5–83.7): they under-cover by 6.9 points.",
            -0.069,
        ),
        finding("spread", "caution", "Actual errors are 1.31 × the predicted spread.", 0.31),
        finding("bias", "negligible", "y lies 0.03 stated sd below its prediction.", -0.03),
        finding("groups", "bad", "region=North covers 71 % of its 804 rows.", -0.19),
        finding("width", "good", "Errors grow as widths do."),
        finding("region", "undecided", "Where wind > 9, coverage is 88 % against 90 %.", -0.02),
    )


def verdict() -> tuple[VerdictLine, ...]:
    """The findings in sentences, and a next step."""
    return (
        *(
            VerdictLine(found.sentence, found.state, found.question, about=found.id)
            for found in findings()
        ),
        VerdictLine(
            "Best next step: recalibrate within region.",
            "info",
            STEP,
            "howsure.recalibrate(new, calibration, method='group', by='region')",
            about=STEP,
        ),
    )


def content() -> Document:
    """A report with everything in it, of one model."""
    told, oracle = risk_coverage()
    curve, constant, marks = characteristic()
    made = document_of(
        title="wind_forecast.parquet",
        lines=verdict(),
        findings=findings(),
        records=(*records(), *group_records(30)),
        curves=(
            pit_histogram(),
            pit_ecdf(),
            calibration(),
            calibration(name="interval_calibration", bend=-0.2),
            told,
            oracle,
            error_by_width(),
            rolling(),
            curve,
            constant,
            *deficit(),
        ),
        tables=(groups(), models(), worst_rows(), marks, *congruence()),
        command=(
            "howsure assess wind_forecast.parquet --y power --lower lo90 --upper hi90 "
            "--coverage 0.9 --groups region -o report.html"
        ),
        facts={
            "Rows": "12,000",
            "Models": "boosted trees",
            "Predictions": "intervals, distribution, point",
            "Nominal coverage": "0.9",
            "Seed": "0",
            "howsure": "0.1.0",
            "Notes": "Kendall τ used 20,000 rows drawn from all; the table has 30 groups.",
        },
    )
    return replace(made, glossary=glossary())


def several_models(names: tuple[str, ...] = ("boosted trees", "linear", "deep")) -> Document:
    """A report that compares models."""
    curves: list[Curve] = []
    for place, name in enumerate(names):
        told, oracle = risk_coverage(name)
        curves += [
            calibration(name, bend=0.3 - 0.25 * place),
            pit_histogram(name),
            error_by_width(name),
            told,
            oracle,
            rolling(name),
            *characteristic(name)[:2],
            *deficit(name),
        ]
    compared = finding("comparison", "good", f"{names[0]} beats {names[1]} in MAE by 0.2.")
    made = document_of(
        title="Three models on one table",
        lines=(
            VerdictLine(compared.sentence, compared.state, compared.question, about=compared.id),
            *verdict(),
        ),
        findings=(compared, *(replace(f, model=name) for name in names for f in findings())),
        records=tuple(r for name in names for r in records(name)),
        curves=tuple(curves),
        tables=(
            groups(60, model=names[0]),
            models(names[0], names[1]),
            *(characteristic(name)[2] for name in names),
            *(congruence(name)[0] for name in names[:2]),
        ),
        command="howsure assess a.csv b.csv c.csv -o report.html",
        facts={"Rows": "12,000", "Models": ", ".join(names)},
    )
    return replace(made, glossary=glossary())


def drawn_apart() -> tuple[ResultTable, ...]:
    """Tables of two models whose figures show rows: y beside intervals, coverage in groups."""
    return tuple(
        table
        for model in ("boosted trees", "linear")
        for table in (interval_rows(model), groups(5, model), coverage(model))
    )


def hostile_congruence(text: str) -> tuple[ResultTable, ...]:
    """Tables of congruence in which every text is hostile."""
    whole, ends, tree = congruence(text, count=12)
    names = np.array([f"{text} {place}" for place in range(12)], dtype=object)
    leaves = np.array([text, f"{text}, {text}", "c"], dtype=object)
    labels = {"first": text, "second": text}
    return (
        replace(whole, columns={**whole.columns, "row": names}, labels=labels, notes=text),
        replace(ends, columns={**ends.columns, text: names[:8]}),
        replace(tree, columns={**tree.columns, "where": leaves}, notes=text),
    )
