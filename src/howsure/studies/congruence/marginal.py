"""Figure 1: a model that is right on the whole and wrong at nearly every x.

x ~ N(0, 1), y ~ N(3x, 1), and a model that says N(0, 10) whatever x is: the law of y over all
rows, so that its calibration error is that of a right model. Source: Young et al. 2025, figure 1
and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtr

from howsure.core.arrays import FloatArray
from howsure.core.rng import child
from howsure.metrics.calibration import calibration_error
from howsure.metrics.congruence import Belief, CongruenceReference, Draws, Normals, null_reference
from howsure.studies.congruence.sweep import Case, Study

Rows = tuple[FloatArray, FloatArray, Normals, Belief]

IGNORING: Final = "ignores x"
MODELS: Final[Mapping[str, Callable[[FloatArray], Normals]]] = {
    IGNORING: lambda x: Normals(np.zeros_like(x), np.full_like(x, np.sqrt(10.0))),
    "right": lambda x: Normals(3.0 * x, np.ones_like(x)),
}
"""The model of the figure, and the one that is right."""
_KNOWN: Final[Mapping[tuple[str, str, str], tuple[float | None, tuple[float, float]]]] = {
    ("half-variance", IGNORING, "ℓ = 1"): (0.209, (0.223, 0.008)),
    ("variance", IGNORING, "ℓ = 1"): (None, (0.359, 0.013)),
}


def ignoring_x(seeds: int, replicates: int) -> tuple[Study, Study]:
    """Congruence errors of both models, by two readings of γ of y, and their calibration errors.

    Parameters
    ----------
    seeds : int
        Sets of 500 rows.
    replicates : int
        Sets drawn from the models for the nulls and p-values.

    Returns
    -------
    congruence, calibration : Study
        The text sets γ of y to 1/(2 variance), the code of the figure to variance/2.
    """
    errors, cases = [], []
    for model, law in MODELS.items():
        rows = [figure_rows(seed, law) for seed in range(seeds)]
        errors.append(calibration_case(model, rows))
        cases += [
            _congruence_case(model, rows, gamma, mode, replicates)
            for gamma in ("variance", "half-variance")
            for mode in ("ℓ = 1", "exact")
        ]
    return (
        Study(title="Figure 1: congruence error (γ of y by two readings)", cases=tuple(cases)),
        Study(title="Figure 1: calibration error", cases=tuple(errors)),
    )


def _congruence_case(
    model: str, rows: Sequence[Rows], gamma: str, mode: str, replicates: int
) -> Case:
    """One model by one reading of γ and one mode."""
    found = []
    for seed, (x, y, belief, sampled) in enumerate(rows):
        reference = CongruenceReference(
            x,
            y,
            belief if mode == "exact" else sampled,
            bandwidth=1.0,
            output_bandwidth=gamma,
        )
        found.append(
            null_reference(reference, outcomes=belief.draw, replicates=replicates, seed=seed)
        )
    published, checked = _KNOWN.get((gamma, model, mode), (None, None))
    return Case(
        label=f"{model}, {gamma}, {mode}",
        grid=np.array([x for x, *_ in rows]),
        values=np.array([[null.point_observed] for null in found]),
        null=np.array([null.point_expected for null in found]),
        published=published,
        checked=checked,
        p_values=tuple(null.p_value for null in found),
    )


def figure_rows(seed: int, law: Callable[[FloatArray], Normals]) -> Rows:
    """Inputs, outcomes, a model's belief, and one draw a row of it."""
    rng = child(seed, "congruence studies", "figure 1")
    x = rng.standard_normal(500)
    y = 3.0 * x + rng.standard_normal(500)
    belief = law(x)
    return x, y, belief, drawn(belief, rng, 1)


def drawn(law: Normals, rng: np.random.Generator, count: int) -> Draws:
    """ℓ draws of a belief at each row."""
    return Draws(np.hstack([law.draw(rng) for _ in range(count)]))


def calibration_case(model: str, rows: Sequence[Rows]) -> Case:
    """The calibration error of the same beliefs: one number for each set of data."""
    found = [
        calibration_error(ndtr((y - belief.mean[:, 0]) / belief.sd[:, 0]))
        for _, y, belief, _ in rows
    ]
    ours = model == IGNORING
    return Case(
        label=model,
        grid=np.zeros((len(rows), 1)),
        values=np.array([[[one.value]] for one in found]),
        null=np.array([[one.null] for one in found], dtype=np.float64),
        published=0.007 if ours else None,
        checked=(0.015, 0.009) if ours else None,
    )
