"""What an assessment tells of conditional congruence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from howsure.core.arrays import AnyArray
from howsure.core.errors import attempt
from howsure.engine.metric import SLOW_ROWS
from howsure.predictions import EvalSet
from howsure.report.images import MAX_MODELS, image_table
from howsure.report.options import Settings
from howsure.topics.congruence.laws import LAWS
from howsure.topics.congruence.view import (
    CongruenceOptions,
    CongruenceReport,
    assess_congruence,
    congruence_mode,
    unanswered,
)


def reports(
    evalsets: Sequence[EvalSet],
    settings: Settings,
    texts: Mapping[str, AnyArray],
    images: AnyArray | None,
) -> list[CongruenceReport]:
    """Conditional congruence of every model, in one mode; nothing without inputs.

    `texts` and `images` belong to the rows, where there are any.
    """
    if not any(evalset.features or evalset.embedding is not None for evalset in evalsets):
        return []
    everything = "mean_cce" in settings.also
    if evalsets[0].n > SLOW_ROWS and not everything and evalsets[0].embedding is None:
        return []
    if not all(any(isinstance(b, LAWS) for b in evalset.predictions) for evalset in evalsets):
        return []
    return attempt(
        "congruence",
        partial(_reports, evalsets, settings, texts, images, everything),
        lambda reason: [unanswered(evalset, reason) for evalset in evalsets],
    )


def _reports(
    evalsets: Sequence[EvalSet],
    settings: Settings,
    texts: Mapping[str, AnyArray],
    images: AnyArray | None,
    everything: bool,
) -> list[CongruenceReport]:
    embedded = [with_embedding(evalset) for evalset in evalsets]
    options, seed = settings.congruence or CongruenceOptions(), settings.seed
    mode = congruence_mode(embedded, options.draws, seed=seed, everything=everything)
    assessed = []
    for number, evalset in enumerate(embedded):
        report = assess_congruence(
            evalset, mode, seed=seed, everything=everything, options=options, beside=texts
        )
        if len(embedded) > 1:
            named = [
                replace(c, notes=f"{evalset.model}: {c.notes}") for c in report.curves if c.notes
            ]
            report = replace(report, curves=(*named, *(c for c in report.curves if not c.notes)))
        rows = next((table for table in report.tables if table.name == "cce_rows"), None)
        if (
            images is not None
            and len(images) == evalset.n
            and rows is not None
            and number < MAX_MODELS
        ):
            pictures = attempt(
                f"images of {evalset.model}",
                partial(image_table, rows, images[report.places]),
                lambda _: None,
            )
            if pictures is not None:
                report = replace(report, tables=(*report.tables, pictures))
        assessed.append(report)
    return assessed


def with_embedding(evalset: EvalSet) -> EvalSet:
    """The set with an embedding of its features: numbers scaled, labels as indicators."""
    if evalset.embedding is not None or not evalset.features:
        return evalset
    from howsure.inputs.encoders.tabular import tabular_encoder

    embedding = tabular_encoder(evalset.features).transform(evalset.features)
    return replace(evalset, embedding=embedding)
