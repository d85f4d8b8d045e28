"""Of many members some stand for all, the same whatever the order of rows."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.rng import child
from howsure.predictions import EvalSet, Samples
from howsure.recalibration import location_scale as moving
from howsure.recalibration.affine import Widths
from howsure.recalibration.variance import IsotonicVariance


@pytest.mark.parametrize("method", [Widths, IsotonicVariance])
@pytest.mark.parametrize("law", ["normal", "t"])
def test_some_members_teach_what_all_do(
    method: type, law: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = child(0, f"members {law}")
    n, size = 800, 500
    sd = np.exp(rng.uniform(-1, 1, n))
    noise = rng.normal(size=(n, size)) if law == "normal" else rng.standard_t(5, size=(n, size))
    held = EvalSet.checked(sd**1.3 * rng.normal(size=n), Samples(sd[:, None] * noise))
    some = method("samples").fit(held)
    mixed = method("samples").fit(held.take(rng.permutation(n)))
    monkeypatch.setattr(moving, "_MAX_MEMBERS", size)
    every = method("samples").fit(held)
    told, again, whole = (
        np.array([each.value for each in made.parameters]) for made in (some, mixed, every)
    )
    np.testing.assert_allclose(told, again, rtol=1e-9)
    np.testing.assert_allclose(told, whole, rtol=0.05)
