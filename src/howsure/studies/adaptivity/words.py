"""What a page on adaptivity says, what its numbers mean, and what was published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from howsure.core import formats
from howsure.core.formats import counted, listed
from howsure.report.document import GlossaryEntry, Tone, VerdictLine
from howsure.studies.adaptivity.figures import TITLES
from howsure.studies.adaptivity.result import MethodComparison
from howsure.studies.engine import named

Averages = Mapping[float, Mapping[str, tuple[float, ...]]]
"""By coverage and measure: an average over models for each method."""

PUBLISHED_METHODS: Final = ("LAC", "APS", "RAPS", "SAPS", "O-LAC", "O-SAPS")
PUBLISHED: Final[Averages] = MappingProxyType(
    {
        0.8: {
            "t_cv": (0.652, 0.088, 0.076, 0.110, 0.072, 0.061),
            "t_ss": (-0.504, 0.661, 0.728, 0.696, 0.722, 0.721),
            "empirical_coverage": (0.798, 0.801, 0.800, 0.801, 0.800, 0.804),
            "set_size": (0.959, 4.929, 2.151, 1.422, 1.410, 1.732),
        },
        0.85: {
            "t_cv": (0.528, 0.079, 0.082, 0.095, 0.062, 0.055),
            "t_ss": (-0.194, 0.653, 0.691, 0.690, 0.731, 0.720),
            "empirical_coverage": (0.849, 0.850, 0.850, 0.851, 0.850, 0.854),
            "set_size": (1.132, 8.166, 2.391, 1.690, 1.617, 2.083),
        },
        0.9: {
            "t_cv": (0.304, 0.065, 0.155, 0.148, 0.050, 0.045),
            "t_ss": (0.543, 0.640, 0.616, 0.673, 0.737, 0.720),
            "empirical_coverage": (0.900, 0.900, 0.901, 0.901, 0.900, 0.903),
            "set_size": (1.474, 15.433, 2.622, 1.988, 2.391, 3.382),
        },
        0.95: {
            "t_cv": (0.119, 0.043, 0.093, 0.086, 0.031, 0.032),
            "t_ss": (0.678, 0.603, 0.646, 0.670, 0.743, 0.719),
            "empirical_coverage": (0.951, 0.950, 0.951, 0.951, 0.952, 0.954),
            "set_size": (2.609, 37.817, 4.573, 3.941, 4.454, 6.316),
        },
    }
)
"""Averages over nine nets on ImageNet (Jang and Lee 2025, tables 2, 4 and 5; 50 cells)."""
PUBLISHED_INTERVAL_METHODS: Final = ("CP", "CP-A", "PAC", "SSCP", "O-CPA", "O-PAC")
PUBLISHED_INTERVALS: Final[Averages] = MappingProxyType(
    {
        0.6: {
            "t_cv": (0.282, 0.214, 0.208, 0.222, 0.200, 0.219),
            "t_ss": (0.920, 0.940, 0.940, 0.916, 0.956, 0.956),
            "empirical_coverage": (0.594, 0.595, 0.618, 0.597, 0.649, 0.697),
            "width": (2.529, 2.617, 2.748, 2.607, 2.849, 3.205),
        },
        0.7: {
            "t_cv": (0.251, 0.144, 0.146, 0.168, 0.156, 0.162),
            "t_ss": (0.937, 0.941, 0.941, 0.915, 0.956, 0.954),
            "empirical_coverage": (0.694, 0.698, 0.719, 0.698, 0.724, 0.776),
            "width": (3.314, 3.242, 3.390, 3.232, 3.356, 3.817),
        },
        0.8: {
            "t_cv": (0.194, 0.097, 0.103, 0.105, 0.096, 0.109),
            "t_ss": (0.940, 0.938, 0.937, 0.922, 0.952, 0.951),
            "empirical_coverage": (0.796, 0.797, 0.814, 0.798, 0.806, 0.854),
            "width": (4.261, 4.038, 4.222, 4.032, 4.136, 4.654),
        },
    }
)
"""Averages over four nets on visual acuity (the same, tables 10 and 11); data are not public."""

GLOSSARY: Final = (
    GlossaryEntry(
        name="t_cv",
        title="T-CV",
        meaning="Largest gap between coverage and nominal over cells of similar difficulty.",
        formula="max_b |(1−α) − cov_b|",
        source="Jang and Lee 2025, equation 3",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="t_ss",
        title="T-SS",
        meaning="How well mean size follows mean difficulty over cells of similar difficulty.",
        formula="sign(β)·R² of the line through the cells",
        source="Jang and Lee 2025, equation 4",
        direction="higher is better",
        notion="local",
    ),
    GlossaryEntry(
        name="sscv",
        title="SSCV",
        meaning="Largest coverage gap over strata of set size.",
        source="Angelopoulos et al. 2021",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="escv",
        title="ESCV",
        meaning="Largest coverage gap over each exact set size.",
        source="Huang et al. 2024, two-sided as in Jang and Lee 2025",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="set_deficit",
        title="Deficit",
        meaning="How many labels sets lack to contain the true one.",
        formula="mean max(0, rank − size)",
        direction="lower is better",
        units="labels",
    ),
    GlossaryEntry(
        name="set_excess",
        title="Excess",
        meaning="How many labels sets contain beyond the true one.",
        formula="mean max(0, size − rank)",
        direction="lower is better",
        units="labels",
    ),
)


def published_of(comparison: MethodComparison, measure: str) -> dict[str, float]:
    """Published averages of one measure by method, at the comparison's coverage; often none."""
    labels = comparison.units == "labels"
    methods = PUBLISHED_METHODS if labels else PUBLISHED_INTERVAL_METHODS
    held = (PUBLISHED if labels else PUBLISHED_INTERVALS).get(round(comparison.coverage, 9), {})
    return dict(zip(methods, held[measure], strict=True)) if measure in held else {}


def title_of(methods: int, tasks: Sequence[str]) -> str:
    """What was studied."""
    on = f"{counted(methods, 'method')} on {named(tasks, 'task')}"
    return f"Do prediction methods cover easy and hard inputs alike? {on}"


def task_lines(comparison: MethodComparison) -> tuple[VerdictLine, ...]:
    """Which methods cover easy and hard inputs alike, and whose sizes follow difficulty."""
    floor = comparison.floor
    gaps = dict(zip(comparison.methods, comparison.median("t_cv").tolist(), strict=True))
    slopes = dict(zip(comparison.methods, comparison.median("t_ss").tolist(), strict=True))
    chance = f"Chance alone shows {floor.median:.3f}, 95 % of the time below {floor.upper:.3f}."
    groups: tuple[tuple[str, Tone, dict[str, float]], ...] = (
        ("Significant coverage gap", "bad", {m: v for m, v in gaps.items() if v > floor.upper}),
        ("No significant gap", "undecided", {m: v for m, v in gaps.items() if v <= floor.upper}),
    )
    lines = [
        VerdictLine(text=f"T-CV is {_span(held)}. {chance}", tone=tone, question=question)
        for question, tone, held in groups
        if held
    ]
    known = {method: slope for method, slope in slopes.items() if math.isfinite(slope)}
    if known:
        text = f"T-SS, how well size follows difficulty, is {_span(known)}."
        lines.append(VerdictLine(text=text, question="Size and difficulty"))
    for measure, values in (("t_cv", gaps), ("t_ss", slopes)):
        for method in (method for method, value in values.items() if math.isnan(value)):
            reason = comparison.reasons.get((method, measure), "no repeat has an answer")
            text = f"{TITLES[measure]} of {method} is not known: {reason}."
            lines.append(VerdictLine(text=text, question="Not known"))
    return tuple(lines)


def _span(values: Mapping[str, float]) -> str:
    """Every value where they are few, else the ends of their range."""
    order = sorted(values, key=values.__getitem__)
    told = [f"{values[method]:.3f} ({method})" for method in order]
    return listed(told) if len(told) < 4 else f"{told[0]} to {told[-1]} for {len(told)} methods"


def headline(comparisons: Mapping[str, MethodComparison]) -> VerdictLine | None:
    """How many methods cover easy and hard inputs alike, as far as chance allows to say."""
    tests = [
        (task, method, bool(violation <= held.floor.upper))
        for task, held in comparisons.items()
        for method, violation in zip(held.methods, held.median("t_cv").tolist(), strict=True)
        if math.isfinite(violation)
    ]
    if not tests:
        return None
    tasks = list(dict.fromkeys(task for task, _, _ in tests))
    good = [method for _, method, alike in tests if alike]
    of = "methods" if len(tasks) == 1 else "tests of a method"
    text = (
        f"{len(good) or 'None'} of {len(tests)} {of} on {named(tasks, 'task')} "
        f"{'shows' if len(good) == 1 else 'show'} no significant coverage gap between easy and "
        f"hard inputs at nominal {formats.level(next(iter(comparisons.values())).coverage)}"
    )
    text += f": {listed(good, 3)}." if good and len(tasks) == 1 else "."
    if 0 < len(good) < len(tests):
        text += " The gaps of the others are larger than chance alone explains."
    return VerdictLine(text=text, tone="undecided" if good else "bad")
