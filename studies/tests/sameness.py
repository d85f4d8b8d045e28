"""Whether two results of a test at every point are the same."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from howsure_studies.pointwise import PointwiseResult


def same(one: PointwiseResult, other: PointwiseResult, *, labels: bool = False) -> None:
    """Every field equal, arrays bit by bit; where labels differ, all but names."""
    for name in (field.name for field in fields(PointwiseResult) if field.init):
        a, b = getattr(one, name), getattr(other, name)
        if labels and name in ("world", "method"):
            continue
        if labels and name == "reasons":
            a, b = set(a), set(b)
        if name == "mean_ends" and a is not None:
            assert all(np.array_equal(p, q) for p, q in zip(a, b, strict=True))
        elif isinstance(a, np.ndarray):
            assert np.array_equal(a, b, equal_nan=True), name
        elif name == "truth" and a is not None:
            assert np.array_equal(a.mean, b.mean)
            assert np.array_equal(a.scale, b.scale)
            assert a.noise == b.noise
        elif name == "failures":
            assert [(f.trial, f.stage, f.message) for f in a] == [
                (f.trial, f.stage, f.message) for f in b
            ]
        else:
            assert a == b, name
