"""What a page on adaptivity says, what its numbers mean, and what was published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from howsure.protocols.adaptivity_result import MethodComparison
from howsure.report.document import GlossaryEntry, Tone, VerdictLine

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
        meaning="Largest violation of coverage over cells of equal mass by ease.",
        formula="max_b |(1−α) − cov_b|",
        source="Jang and Lee 2025, equation 3",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="t_ss",
        title="T-SS",
        meaning="How well mean size follows mean difficulty over cells by ease.",
        formula="sign(β)·R² of the line through the cells",
        source="Jang and Lee 2025, equation 4",
        direction="higher is better",
        notion="local",
    ),
    GlossaryEntry(
        name="sscv",
        title="SSCV",
        meaning="Largest violation of coverage over strata of set size.",
        source="Angelopoulos et al. 2021",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="escv",
        title="ESCV",
        meaning="Largest violation of coverage over each exact set size.",
        source="Huang et al. 2024, two-sided as in Jang and Lee 2025",
        direction="lower is better",
        notion="local",
    ),
    GlossaryEntry(
        name="set_deficit",
        title="Deficit",
        meaning="Labels by which sets fall short of the true one.",
        formula="mean max(0, rank − size)",
        direction="lower is better",
        units="labels",
    ),
    GlossaryEntry(
        name="set_excess",
        title="Excess",
        meaning="Labels that sets hold past the true one.",
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


def method_lines(comparison: MethodComparison) -> tuple[VerdictLine, ...]:
    """One sentence a method: does it hold coverage at every ease, do sizes follow difficulty?"""
    floor = comparison.floor
    lines = []
    for name, violation, slope in zip(
        comparison.methods, comparison.median("t_cv"), comparison.median("t_ss"), strict=True
    ):
        if math.isnan(violation):
            reason = comparison.reasons.get((name, "t_cv"), "no repeat has an answer")
            lines.append(VerdictLine(text=f"Not known: {reason}.", question=name))
            continue
        held = bool(violation <= floor.upper)
        told = "within" if held else "beyond"
        sizes = (
            comparison.reasons.get((name, "t_ss"), "T-SS is not known")
            if math.isnan(slope)
            else f"T-SS is {slope:.2f}"
        )
        text = (
            f"T-CV is {violation:.3f}, {told} what chance shows of a perfect model "
            f"({floor.median:.3f} in the median, 95 % below {floor.upper:.3f}); {sizes}."
        )
        lines.append(VerdictLine(text=text, tone="undecided" if held else "bad", question=name))
    return tuple(lines)


def headline(comparisons: Sequence[MethodComparison]) -> VerdictLine | None:
    """The main message: how many tests hold coverage at every ease."""
    values = np.concatenate([held.median("t_cv") for held in comparisons])
    floors = np.concatenate([np.full(len(held.methods), held.floor.upper) for held in comparisons])
    known = np.isfinite(values)
    if not known.any():
        return None
    good = int((values[known] <= floors[known]).sum())
    total = int(known.sum())
    tasks = len({held.task for held in comparisons})
    text = (
        f"In {good} of {total} tests of methods on {tasks} {'task' if tasks == 1 else 'tasks'}, "
        "coverage holds from the hardest rows to the easiest, as far as chance lets one see."
    )
    tone: Tone = "bad" if good == 0 else "undecided"
    return VerdictLine(text=text, tone=tone)
