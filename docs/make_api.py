"""Write the pages of the API reference, one a topic, from what packages export.

`conf.py` calls this at every build; the pages are not kept, since nothing in them is written by
hand but the words below.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sphinx.pycode import ModuleAnalyzer

FOLDER = Path(__file__).parent / "reference" / "api"


class Topic(NamedTuple):
    """A page: where names come from, and which of them, all if none are named."""

    package: str
    title: str
    told: str
    modules: tuple[str, ...] = ()
    """Modules of the package whose names the page holds, all if there are none."""
    names: tuple[str, ...] = ()
    """The names, where the package has no list of them."""


TOPICS = {
    "howsure": Topic("howsure", "howsure", "What most work needs: one import, a dozen names."),
    "predictions": Topic(
        "howsure.predictions",
        "Predictions",
        "The kinds of prediction, and the evaluation set that joins them with y.",
    ),
    "inputs": Topic("howsure.inputs", "Tables", "Files and data frames become evaluation sets."),
    "streaming": Topic(
        "howsure.streaming",
        "Tables larger than memory",
        "Read by parts, on all cores or a Dask cluster; what parts keep can be merged.",
    ),
    "watch": Topic(
        "howsure.watch",
        "Watch",
        "Monitor a deployed model; safe to check every day.",
    ),
    "metrics-coverage": Topic(
        "howsure.metrics",
        "Measures: coverage and width",
        "How often intervals cover, and how wide they are. All take plain arrays.",
        ("coverage",),
    ),
    "metrics-scores": Topic(
        "howsure.metrics",
        "Measures: scores and skill",
        "Interval scores, pinball loss, CRPS, and skill against a baseline.",
        ("scores", "crps", "skill", "decomposition"),
    ),
    "metrics-calibration": Topic(
        "howsure.metrics",
        "Measures: calibration",
        "Are predicted probabilities and spreads calibrated?",
        ("calibration", "pit", "dispersion"),
    ),
    "metrics-tails": Topic(
        "howsure.metrics",
        "Measures: tails",
        "Are extremes as frequent and as far out as predicted? VaR backtests by name.",
        ("tails", "tail_calibration", "backtests"),
    ),
    "metrics-uncertainty": Topic(
        "howsure.metrics",
        "Measures: widths and errors",
        "Do widths follow errors, and how much width does higher coverage cost?",
        ("association", "selective", "characteristic"),
    ),
    "metrics-conditional": Topic(
        "howsure.metrics",
        "Measures: conditional coverage",
        "Does coverage depend on the inputs, on groups, or on the width?",
        ("conditional", "congruence"),
    ),
    "metrics-adaptivity": Topic(
        "howsure.metrics",
        "Measures: ease and label sets",
        "Are widths and sets larger for harder rows?",
        ("adaptivity", "ease"),
    ),
    "metrics-point": Topic(
        "howsure.metrics",
        "Measures: point forecasts",
        "How good is the forecast itself?",
        ("point",),
    ),
    "topics": Topic(
        "howsure.topics",
        "Measures of your own",
        "The parts of a topic that another package adds.",
    ),
    "recalibration": Topic(
        "howsure.recalibration",
        "Recalibration",
        "Ways to correct predictions on held-out rows, and to compare these ways.",
    ),
    "methods": Topic(
        "howsure_studies.methods",
        "Methods",
        "Models that predict with uncertainty, and the interface that yours may have.",
    ),
    "sklearn": Topic(
        "howsure.sklearn",
        "For scikit-learn",
        "Scorers, displays, and estimators that recalibrate others.",
    ),
    "conformal": Topic(
        "howsure.conformal",
        "Conformal prediction",
        "Intervals and label sets from scores on held-out rows.",
    ),
    "deep": Topic(
        "howsure_studies.methods.deep",
        "Networks",
        "Networks that predict with uncertainty; they need the extra `deep`.",
    ),
    "selective": Topic(
        "howsure_studies.methods.selective",
        "Selective prediction",
        "Methods that withhold a prediction where they cannot vouch for it.",
    ),
    "counts": Topic(
        "howsure.predictions.counts", "Distributions of counts", "Families for whole numbers."
    ),
    "encoders": Topic(
        "howsure.inputs.encoders", "Encoders", "Texts and images become vectors of numbers."
    ),
    "errors": Topic(
        "howsure.core.errors",
        "Errors",
        "All are a `HowsureError`; the message names the argument, the rule and what came.",
        names=(
            "DegenerateError",
            "HowsureError",
            "HowsureWarning",
            "InputError",
            "MissingDependencyError",
            "UnanswerableError",
        ),
    ),
    "testing": Topic("howsure.testing", "Assertions for tests", "What a test of a model calls."),
    "verdict": Topic(
        "howsure.verdict", "The verdict", "Findings, what they are made of, and advice."
    ),
    "figures": Topic(
        "howsure.figures",
        "Figures",
        "Figures as data, drawn with matplotlib or as Vega-Lite. The gallery shows all.",
    ),
    "tasks": Topic(
        "howsure_studies.tasks", "Studies: tasks", "Tables and images by name, cut into parts."
    ),
    "images": Topic("howsure_studies.tasks.images", "Studies: images", "Drawn and original."),
    "worlds": Topic(
        "howsure_studies.tasks.worlds", "Studies: worlds", "Tasks whose truth is known."
    ),
    "engine": Topic(
        "howsure_studies.engine",
        "Studies: plans, runs and stores",
        "What studies share, for those who write one.",
    ),
    "pointwise": Topic(
        "howsure_studies.pointwise", "Study: coverage at every point", "In worlds of known truth."
    ),
    "shift": Topic("howsure_studies.shift", "Study: coverage under shift", "The benchmark."),
    "adaptivity": Topic(
        "howsure_studies.adaptivity", "Study: adaptivity", "Do sets and intervals follow ease?"
    ),
    "congruence": Topic(
        "howsure_studies.congruence", "Study: conditional congruence", "On models of images."
    ),
    "characteristic": Topic(
        "howsure_studies.characteristic", "Study: the characteristics curve", "On time series."
    ),
    "which": Topic(
        "howsure_studies.which", "Study: which method to use", "Methods on real tables."
    ),
}

FIRST = (
    "howsure.assess",
    "howsure.assess_model",
    "howsure.load",
    "howsure.Assessment",
    "howsure.Distribution",
    "howsure.Samples",
    "howsure.Quantiles",
    "howsure.Intervals",
    "howsure.Probabilities",
    "howsure.LabelSets",
    "howsure.recalibrate",
    "howsure.conformal",
    "howsure.improve",
    "howsure.watch.Watch",
    "howsure.testing.assert_covers",
    "howsure.testing.assert_holds",
    "howsure.metrics.crps",
    "howsure.metrics.log_score",
    "howsure.metrics.interval_score",
    "howsure.metrics.empirical_coverage",
    "howsure.sklearn.RecalibratedRegressor",
    "howsure.HowsureError",
)
"""What most work needs."""

GROUPS = {
    "Judge a table or a model": (*("howsure", "verdict", "watch", "testing", "sklearn", "errors"),),
    "Bring predictions in": ("predictions", "counts", "inputs", "encoders", "streaming"),
    "Measure": (*(name for name in TOPICS if name.startswith("metrics-")), "topics"),
    "Correct": ("recalibration", "conformal"),
    "Draw": ("figures",),
    "Fit methods": ("methods", "deep", "selective"),
    "Run studies": (
        *("tasks", "images", "worlds", "engine"),
        *("pointwise", "shift", "adaptivity", "congruence", "characteristic", "which"),
    ),
}
"""Topics by what somebody wants to do."""


def names_of(topic: Topic) -> list[str]:
    """The exported names that a page holds, functions and classes before constants."""
    package = importlib.import_module(topic.package)
    names = [name for name in topic.names or package.__all__ if not name.startswith("_")]
    if topic.modules:
        listed = package._HOMES.items()
        home = {name: module.split(".")[1] for module, held in listed for name in held.split()}
        names = [name for name in names if home[name] in topic.modules]
    return sorted(names, key=lambda name: (not _documented(getattr(package, name)), name.lower()))


def _home(topic: Topic, name: str) -> str:
    """The package on whose page a name is described: the first that exports the same thing."""
    value = getattr(importlib.import_module(topic.package), name)
    for package in dict.fromkeys(other.package for other in TOPICS.values()):
        if package == topic.package:
            return package
        module = importlib.import_module(package)
        if name in getattr(module, "__all__", ()) and getattr(module, name) is value:
            return package
    raise KeyError(topic.package)


def _place(topic: Topic, name: str) -> str:
    """Where a name is described, in full; a package that can be called is a verb."""
    if inspect.ismodule(getattr(importlib.import_module(topic.package), name)):
        return f"{topic.package}.report.{name}.{name}"
    return f"{_home(topic, name)}.{name}"


def _documented(value: Any) -> bool:
    return inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)


def _is_ours(cls: type, name: str) -> bool:
    """Whether a member comes from a class of howsure, not from a base of another library."""
    home = next(base for base in cls.__mro__ if name in vars(base))
    return name.startswith("_") or home.__module__.startswith("howsure")


def page(topic: Topic) -> str:
    """One page: what each name is, in a line, then each in full."""
    package = importlib.import_module(topic.package)
    names = names_of(topic)
    rows = [f"# {topic.title}", "", topic.told, ""]
    rows += [f"```python\nfrom {topic.package} import {names[0]}\n```", ""]
    rows += [*_lines(topic), "", "```{eval-rst}", f".. currentmodule:: {topic.package}", ""]
    for name in names:
        value = getattr(package, name)
        if _home(topic, name) != topic.package:
            continue
        if inspect.ismodule(value):
            rows += [f".. autofunction:: {_place(topic, name)}", ""]
        elif inspect.isclass(value):
            hidden = any(base.__name__.startswith("_") for base in value.__bases__)
            inherited = ["   :inherited-members:"] if hidden else []  # of a base with no page
            theirs = [n for n in dir(value) if hidden and not _is_ours(value, n)]
            theirs += [n for n in vars(value) if re.fullmatch(r"set_\w+_request", n)]
            left_out = [f"   :exclude-members: {', '.join(theirs)}"] if theirs else []
            rows += [f".. autoclass:: {name}", "   :members:", *inherited, *left_out, ""]
        elif inspect.isroutine(value):
            rows += [f".. autofunction:: {name}", ""]
        else:
            rows += [f".. py:data:: {name}", "", f"   {_beside(package, name)}".rstrip(), ""]
            rows += [f"   {_told(value)}", ""]
    return "\n".join([*rows, "```", ""])


@cache
def homes() -> dict[str, str]:
    """Each exported name in full, and in full where it is described."""
    return {
        f"{topic.package}.{name}": _place(topic, name)
        for topic in TOPICS.values()
        for name in names_of(topic)
    }


def _told(value: Any) -> str:
    """What a constant holds."""
    if isinstance(value, Mapping):
        return "By name: " + ", ".join(f"``{key}``" for key in value) + "."
    if get_args(value) and all(isinstance(each, str) for each in get_args(value)):
        return "One of " + ", ".join(f"``{each}``" for each in get_args(value)) + "."
    text = " ".join(repr(value).split()).replace("( ", "(").replace(", )", ")")
    return f"``{text}``" if len(text) < 200 and " object at " not in text else ""


def _lines(topic: Topic) -> list[str]:
    """A table of a topic's names, linked, each with a line that says what it is."""
    package = importlib.import_module(topic.package)
    rows = [
        f"| {{py:obj}}`{name} <{_place(topic, name)}>` | {_line(package, name)} |"
        for name in names_of(topic)
    ]
    return ["| name | what it is |", "|---|---|", *rows]


def _line(package: Any, name: str) -> str:
    value = getattr(package, name)
    text = inspect.getdoc(value) if _documented(value) else _beside(package, name)
    first = (text or "").partition("\n\n")[0].replace("\n", " ").strip()
    return (first or _told(value)).replace("|", "\\|")


def _beside(package: Any, name: str) -> str:
    """The docstring below a constant, in the module that sets it."""
    value, root = getattr(package, name), package.__name__.partition(".")[0]
    modules = [key for key in sys.modules if key == root or key.startswith(f"{root}.")]
    for module in sorted(modules, key=lambda key: (not key.startswith(package.__name__), key)):
        if vars(sys.modules[module]).get(name) is value and ("", name) in _constants(module):
            return "\n".join(_constants(module)["", name])
    return ""


@cache
def _constants(module: str) -> Mapping[tuple[str, str], list[str]]:
    """Docstrings below the names that a module sets."""
    return ModuleAnalyzer.for_module(module).find_attr_docs()


def index() -> str:
    """The names that a user needs first, a line each, then all by what they are for."""
    rows = [
        "# API",
        "",
        "What is not listed here may change without notice. Examples run in the tests.",
        "",
        "```{toctree}",
        ":hidden:",
        ":maxdepth: 1",
        "",
        *TOPICS,
        "```",
        "",
        "## The names to know first",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    for name in FIRST:
        package, _, last = name.rpartition(".")
        line = _line(importlib.import_module(package), last)
        rows += [f"| {{py:obj}}`{name} <{homes()[name]}>` | {line} |"]
    rows += ["", "## All, by what they are for", ""]
    for group, topics in GROUPS.items():
        rows += [f"### {group}", ""]
        for name in topics:
            topic = TOPICS[name]
            links = (f"{{py:obj}}`{each} <{_place(topic, each)}>`" for each in names_of(topic))
            rows += [f"**[{topic.title}]({name}.md)**, `{topic.package}`. {topic.told}", ""]
            rows += [f"{', '.join(links)}.", ""]
    return "\n".join(rows)


def write(folder: Path = FOLDER) -> None:
    """Write every page; files that say the same are left, so that a build may skip them."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {"index.md": index(), **{f"{name}.md": page(topic) for name, topic in TOPICS.items()}}
    for old in folder.glob("*.md"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        file = folder / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
