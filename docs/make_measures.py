"""Write a page for each measure of the catalogue into docs/measures."""

from __future__ import annotations

import inspect
import math
from functools import cache
from pathlib import Path
from typing import Any

from howsure import metrics
from howsure.core.records import Direction, Record
from howsure.engine.catalogue import catalogue
from howsure.engine.metric import Form, Metric, Question

FOLDER = Path(__file__).parent / "measures"

_READ = {
    "acceptance": "errors of the point forecast, and uncertainties",
    "acceptance, oracle": "errors of the point forecast, and uncertainties",
    "absolute_error": "y and the point forecast",
    "absolute_error, uncertainty, ranks": "errors of the point forecast, and uncertainties",
    "cdf, left": "the probability that each prediction gives to values up to y",
    "characteristic, recentred_rows": "y, lower, upper and the point forecast",
    "characteristic, recentred_rows, miss_range": "y, lower, upper and the point forecast",
    "components": "the PIT",
    "coverage_drift": "whether y is covered, and time",
    "coverage_gaps": "whether y is covered, and groups",
    "covered": "whether y is covered",
    "crps_of_law": "y and distributions",
    "ert": "whether y is covered, and the inputs",
    "escv": "whether y is covered, and the size of each set",
    "hsic": "whether y is covered, and widths or set sizes",
    "lead_time_drop": "whether y is covered, and lead time",
    "lead_times_differ": "whether y is covered, and lead time",
    "local_pit": "the PIT and the inputs",
    "log_density": "y and distributions",
    "mean_decomposition": "y and a mean",
    "miss_imbalance": "whether y is below or above its interval",
    "noise_given_inputs": "errors and the inputs, where all widths are equal",
    "pit_counts": "the PIT",
    "pit_drift": "the PIT and time",
    "out_of_bounds": "y and the bounds of quantiles",
    "quantile_decomposition": "y and quantiles, distributions or samples",
    "rank_cv": "whether y is covered, and the rank of the true label",
    "rank_ss": "set sizes, and the rank of the true label",
    "regions_differ": "whether y is covered, the inputs, and the PIT if there is one",
    "relative_score": "y, predictions and series",
    "rmsse": "y, the point forecast, series and time",
    "satisfaction_rate": "sizes and difficulties",
    "sd": "the sd of each prediction",
    "set_sizes": "the size of each set",
    "skce": "y and distributions or samples",
    "skill_model": "y and the predictions of two models",
    "skill_persistence": "y, predictions, time and lead",
    "skill_seasonal": "y, predictions, time, lead and season",
    "sscv": "whether y is covered, and the size of each set",
    "t_cv": "whether y is covered, and ease",
    "t_ss": "sizes, difficulties and ease",
    "true_rank, set_sizes": "the rank of the true label, and the size of each set",
    **dict.fromkeys(
        (
            *("class_auc", "class_brier", "class_claims", "class_correct", "class_decisions"),
            *("class_log_score", "class_parts", "class_skill", "answer_impossible", "answer_level"),
            *("answer_shape", "answer_sureness"),
        ),
        "y and class probabilities",
    ),
    "answer_groups": "y, class probabilities and groups",
    "answer_region": "y, class probabilities and the inputs",
    "width_correlation": "whether y is covered, and widths or set sizes",
    "width_response": "errors and the widths of intervals",
    "worst_region": "whether y is covered, and the inputs",
    "worst_slab": "whether y is covered, and the inputs",
    "y, lowers, uppers, coverages": "y and several intervals",
    **{f"twcrps_{side}": "y and the prediction" for side in ("left", "right")},
    **{
        f"tail_{measure}_{side}": "y and distributions or samples"
        for measure in ("occurrence", "severity", "miscalibration")
        for side in ("left", "right")
    },
    **{
        read.format(end): f"whether y is {end} its interval{more}"
        for end in ("below", "above")
        for read, more in (
            ("missed_{0}, level_{0}", ", and how often that is predicted"),
            ("missed_in_time_{0}", ", in order of time"),
            ("missed_in_time_{0}, level_{0}", ", in time order, and how often that is predicted"),
        )
    },
}
"""What a formula reads, by the names of its arrays, where these are not the reader's."""

_START = """\
import numpy as np
import howsure

rng = np.random.default_rng(0)
n = 500
x = rng.uniform(-1, 1, n)
y = np.sin(3 * x) + (0.1 + 0.3 * x**2) * rng.normal(size=n)
mean, sd = np.sin(3 * x), 0.2 + 0.1 * x
"""
_CLASSES = """\
import numpy as np
import howsure

rng = np.random.default_rng(0)
names = ["cat", "dog", "emu", "fox", "gnu"]
proba = rng.dirichlet([3, 2, 1, 1, 1], 500)
y = np.array([rng.choice(names, p=p) for p in proba])
sets = howsure.LabelSets.likeliest(proba, 0.9, names)
"""
_PROBABILITIES = """\
import numpy as np
import howsure

rng = np.random.default_rng(0)
n = 500
x = rng.uniform(-4, 4, n)
y = (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)
p = np.round(1 / (1 + np.exp(-1.5 * x)), 2)
side = np.where(x < 0, "left", "right")
options = howsure.Options(threshold=0.2)
result = howsure.assess(y, p, features={"x": x}, groups={"side": side}, options=options)
"""
EXAMPLES = {
    "distributions": f"""{_START}prediction = howsure.Distribution.normal(mean=mean, sd=sd)
result = howsure.assess(y, prediction)
""",
    "groups and time": f"""{_START}prediction = howsure.Distribution.normal(mean=mean, sd=sd)
side = np.where(x < 0, "left", "right")
result = howsure.assess(y, prediction, groups={{"side": side}}, time=np.arange(n))
""",
    "series and lead times": f"""{_START}prediction = howsure.Distribution.normal(mean=mean, sd=sd)
time, series = np.arange(n), np.arange(n) % 10
rows = {{"time": time, "horizon": time % 4 + 1, "series": series}}
result = howsure.assess(howsure.Table(y, prediction, **rows))
""",
    "inputs": f"""{_START}prediction = howsure.Distribution.normal(mean=mean, sd=sd)
side = np.where(x < 0, "left", "right")
inputs = {{"features": {{"x": x}}, "groups": {{"side": side}}, "ease": -np.abs(x)}}
result = howsure.assess(howsure.Table(y, prediction, **inputs))
""",
    "quantiles": f"""{_START}levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
quantiles = mean[:, None] + sd[:, None] * np.array([-1.64, -0.67, 0, 0.67, 1.64])
result = howsure.assess(y, howsure.Quantiles(levels, quantiles))
""",
    "samples": f"""{_START}samples = mean[:, None] + sd[:, None] * rng.normal(size=(n, 20))
result = howsure.assess(y, howsure.Samples(samples))
""",
    "one width": f"""{_START}lower, upper = mean - 0.35, mean + 0.35
result = howsure.assess(y, (lower, upper), coverage=0.9, features={{"x": x}})
""",
    "times and a lead": f"""{_START}prediction = howsure.Distribution.normal(mean=mean, sd=sd)
result = howsure.assess(y, prediction, time=np.arange(n), options=howsure.Options(lead=1, season=7))
""",
    "two models": f"""{_START}both = {{
    "curve": howsure.Distribution.normal(mean=mean, sd=sd),
    "line": howsure.Distribution.normal(mean=x, sd=np.full(n, 0.6)),
}}
result = howsure.assess(y, both, options=howsure.Options(baseline="line"))
""",
    "labels": f"""{_CLASSES}ease = proba.max(axis=1)
result = howsure.assess(howsure.Table(y, sets, ease=ease))
""",
    "class probabilities": _PROBABILITIES,
}
"""Code that assesses a table, by what is in it; a page has the first that gives its measure."""


def page(metric: Metric) -> str:
    """The page of one measure."""
    read = " or ".join(_read(form) for form in metric.forms)
    notes = [f"- {form.note}" for form in metric.forms if form.note]
    functions = [f"`howsure.metrics.{name}`" for name in _functions(metric)]
    scale = metric.laws.scale
    powers = {"varies": "varies", "log": "adds log s", 0.0: "invariant", 1.0: "multiplies it by s"}
    power = powers.get(scale, f"multiplies it by s^{scale}")
    weights = (
        "A frequency weight of two is a row seen twice."
        if weighted(metric)
        else "It needs rows without weights, and has no value where there are some."
    )
    of_rows = "the PIT" if metric.question is Question.CALIBRATION else "whether y is covered"
    lines = [
        f"# {metric.title}",
        "",
        f"`{metric.name}`: {metric.meaning}",
        "",
        "| | |",
        "|---|---|",
        f"| answers | {metric.question.value} |",
        f"| formula | {_cell(metric.formula)} |",
        f"| direction | {metric.direction.value} |",
        f"| units | {metric.units} |",
        f"| notion it tests | {metric.notion.value} |",
        f"| value of a perfect model | {_target(metric)} |",
        f"| computed at each coverage | {'yes' if metric.per_coverage else 'no'} |",
        f"| computed from | {read or f'{of_rows}, and groups'} |",
        f"| source | {metric.source} |",
        *([f"| also called | {_cell(', '.join(metric.synonyms))} |"] if metric.synonyms else []),
        *([f"| on arrays | {', '.join(functions)} |"] if functions else []),
        "",
        "## What is good",
        "",
        _good(metric),
        "",
        "## Traps",
        "",
        metric.beware,
        "",
        "## Example",
        "",
        *_example(metric),
        "",
        "## Laws",
        "",
        f"Adding a constant to y and predictions: {metric.laws.translation}. "
        f"Multiplying them by s > 0: {power}. "
        f"Negating them: {_reflection(metric.laws.reflection)}. "
        f"Permuting rows changes nothing. {weights}",
        *([f"{metric.laws.why[0].upper()}{metric.laws.why[1:]}."] if metric.laws.why else []),
        *(["", "## Notes", "", *notes] if notes else []),
        "",
    ]
    return "\n".join(lines)


def weighted(metric: Metric) -> bool:
    """Whether it has a value where rows have weights."""
    local = metric.question in {Question.CONDITIONAL, Question.CONGRUENCE, Question.SERIES}
    in_order = metric.name.startswith("christoffersen_")
    return not (local or in_order or metric.name == "satisfaction_rate")


def lower_bound(metric: Metric) -> bool:
    """Whether a classifier's or a regressor's skill is estimated, which may be below 0."""
    return metric.name.startswith("ert_") or metric.name == "local_pit"


def _target(metric: Metric) -> str:
    if isinstance(metric.target, str):
        return {
            "coverage": "the nominal coverage",
            "miss": "one minus the nominal coverage",
            "half miss": "half of one minus the nominal coverage",
        }[metric.target]
    if lower_bound(metric):
        return "0 or less"
    return "depends on the data" if math.isnan(metric.target) else f"{metric.target:g}"


def _good(metric: Metric) -> str:
    target = _target(metric)
    known = target != "depends on the data"
    if metric.direction is Direction.TARGET:
        told = f"A perfect model has {target}." if known else "Closer to the perfect model's value."
    elif metric.direction is Direction.NONE:
        told = "No direction is better of itself."
        if metric.units == "p-value":
            told = "A perfect model's is below 0.05 in 5 % of tables; a large one proves nothing."
    else:
        word = "Lower" if metric.direction is Direction.LOWER else "Higher"
        told = f"{word} is better" + (f"; a perfect model has {target}." if known else ".")
    null = _record(metric)[1].null
    if not math.isnan(null) and metric.units != "p-value":
        told += (
            " Beside it stands what is expected of a perfect model with these predictions: "
            "`null` of its record."
        )
    if metric.units == "y":
        told += " It is in units of y, so compare it on the same rows only."
    return told


def _read(form: Form) -> str:
    names = ", ".join((*form.needs, *form.keywords.values()))
    return _READ.get(names, f"`{names}`")


@cache
def _results() -> dict[str, Any]:
    """The result of each example."""
    made = {}
    for name, code in EXAMPLES.items():
        held: dict[str, Any] = {}
        exec(compile(code, name, "exec"), held)
        made[name] = held["result"]
    return made


def _record(metric: Metric) -> tuple[str, Record]:
    """The first example with a value of the measure, and that value."""
    for name, result in _results().items():
        for record in result.records:
            if record.metric == metric.name and not math.isnan(record.value):
                return name, record
    raise AssertionError(f"no example has {metric.name}")


def _example(metric: Metric) -> list[str]:
    name, record = _record(metric)
    coverage = "" if math.isnan(record.coverage) else f", coverage={record.coverage:g}"
    code = EXAMPLES[name]
    if record.group:
        code += f'(record,) = [r for r in result.records if r.metric == "{metric.name}"]\n'
    else:
        several = len({each.model for each in _results()[name].records}) > 1
        model = f', model="{record.model}"' if several else ""
        code += f'record = result.record("{metric.name}"{coverage}{model})\n'
    printed = {"value": f"{record.value:.3g}"}
    if not (math.isnan(record.lower) and math.isnan(record.upper)):
        printed["95 % interval"] = f"{record.lower:.3g} to {record.upper:.3g}"
        code += 'interval = f"{record.lower:.3g} to {record.upper:.3g}"\n'
    if not math.isnan(record.null) and metric.units != "p-value":
        printed["perfect model"] = f"{record.null:.3g}"
    fields = {
        "value": "{record.value:.3g}",
        "95 % interval": "{interval}",
        "perfect model": "{record.null:.3g}",
    }
    code += f'print(f"{"; ".join(f"{name} {fields[name]}" for name in printed)}")\n'
    shown = "; ".join(f"{name} {text}" for name, text in printed.items())
    return ["```python", code.rstrip(), "```", "", "```text", shown, "```"]


def index() -> str:
    """The list of pages."""
    lines = ["# Measures", ""]
    question = None
    for metric in catalogue().values():
        if metric.question != question:
            question = metric.question
            lines += [f"## {question.value}", ""]
        lines.append(f"- [{metric.title}]({metric.name}.md): {metric.meaning}")
    lines += [
        "## On arrays",
        "",
        "`howsure.metrics` has these functions, which need no report.",
        "",
    ]
    for name in metrics.__all__:
        function = getattr(metrics, name)
        first = inspect.getdoc(function).partition("\n")[0]
        parameters = ", ".join(inspect.signature(function).parameters)
        lines.append(f"- `{name}({parameters})`: {first}")
    return "\n".join(lines).replace("\n## ", "\n\n## ") + "\n"


def pages() -> dict[str, str]:
    """Every file of the folder, by name."""
    made = {f"{name}.md": page(metric) for name, metric in catalogue().items()}
    return {"README.md": index(), **made}


def _functions(metric: Metric) -> list[str]:
    """Exported functions that make it: of its name, of its forms, and of one kind of content."""
    made = [form.function for form in metric.forms]
    rest = [name for name in metrics.__all__ if name not in catalogue()]
    kinds = {name for name in rest if name.startswith(f"{metric.name}_")}
    kinds |= {"crps"} if metric.name == "crps_fair" else set()
    named = {name for name in metrics.__all__ if getattr(metrics, name) in made}
    read = {name for form in metric.forms for name in form.needs}  # that hold the measure itself
    exact = {n for n in rest if n in read and n in metric.name}
    return [n for n in metrics.__all__ if n == metric.name or n in kinds | named | exact]


def _reflection(law: str) -> str:
    words = {"invariant": "changes nothing", "negates": "negates the value", "varies": "varies"}
    return words.get(law, f"gives the value of `{law}`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the folder anew."""
    made = pages()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
