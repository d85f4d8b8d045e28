"""A held-out table that improves a model's predictions, and proves it on rows kept apart."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, final

from howsure._version import __version__
from howsure.core.classes import frozen
from howsure.core.convert import json_number, plain
from howsure.core.errors import InputError, either
from howsure.core.files import atomic_write, check_outputs
from howsure.core.formats import listed, percent
from howsure.recalibration import FittedRecalibration
from howsure.recalibration.dispatch import method_of
from howsure.recalibration.serialization import TaughtScale
from howsure.report.recalibrate import held_out
from howsure.report.table import split_roles
from howsure.streaming.load import Large
from howsure.verdict import words
from howsure.verdict.findings import questions
from howsure.verdict.improvement import (
    ERROR_RATE,
    MAX_STEPS,
    ImprovedRows,
    ImprovementStep,
    improved,
)

FORMAT = "howsure-improvement/1"
"""The name and version of the JSON form."""
_SPLITS = {
    "random": "at random",
    "units": "by unit",
    "time": "by time, with the last rows held out",
}
_ENDS = {
    "right": "No further recalibration is advised.",
    "one_step": "Stopped after one step",
    "most_steps": f"Stopped at the maximum of {MAX_STEPS} steps.",
    "nothing_helps": "No further recalibration helped on the fitting rows.",
    "unconfirmed": "Stopped, because the last step was not confirmed.",
    "rows": "The rows themselves have faults: correct them first.",
}


@final
@frozen(kw_only=True)
class Improvement:
    """Recalibrations confirmed on held-out rows, one after the other, with the results.

    Attributes
    ----------
    rows : ImprovedRows
        How rows were split, each step with its result, and the findings before and after.
    fitted : FittedRecalibration
        All confirmed steps as one: it can be saved, and applied to other rows. It does not change
        predictions if no step was confirmed.
    notes : tuple of str
        What the reader must know.
    seed : int
        Of the split and all draws.
    """

    rows: ImprovedRows
    fitted: FittedRecalibration
    notes: tuple[str, ...] = ()
    seed: int = 0

    @property
    def right(self) -> bool:
        """Whether no fault is significant on the held-out rows, after all steps."""
        return self.rows.right

    @property
    def summary(self) -> str:
        """What became of it, in words."""
        done = len(self.rows.confirmed)
        steps = {0: "No step was confirmed", 1: "One step was confirmed"}.get(
            done, f"{done} steps were confirmed"
        )
        bad = _names(finding.id for finding in self.rows.after if finding.state == "bad")
        if not bad:
            return f"{steps}. No fault is significant on the held-out rows."
        return f"{steps}. Faults still significant on the held-out rows: {listed(bad)}."

    def lines(self) -> tuple[tuple[str, str], ...]:
        """What was done, in words, each line with its tone: good, bad or none."""
        rows = self.rows
        opened = (
            f"{rows.teaching:,} rows are used to fit, {rows.held_back:,} held-out rows to verify "
            f"(split {_SPLITS[rows.split]})."
        )
        steps = [
            ("good" if step.proof.accepted else "caution", _describe_step(step))
            for step in rows.steps
        ]
        chance = (
            f"If no step helps, the probability of confirming any is at most {percent(ERROR_RATE)}."
        )
        ended = (rows.ended == "nothing_helps" and rows.reason) or _ENDS[rows.ended]
        if rows.ended == "one_step":
            ended += f"; {either('until_right=True', '--until-right')} continues."
        faults = _names(rows.teaching_faults)
        taught = [f"The fitting rows still show a fault of {listed(faults)}."] if faults else []
        after = [
            (finding.state, finding.sentence)
            for finding in rows.after
            if finding.state == "bad" or (finding.id == "rows" and finding.state == "caution")
        ]
        return (
            ("", opened),
            *steps,
            ("", ended),
            *(("caution", text) for text in taught),
            *after,
            ("good" if self.right else "bad", self.summary),
            *((("", chance),) if rows.steps else ()),
            *(("", f"note: {note}") for note in self.notes),
        )

    def __str__(self) -> str:
        return "\n".join(text for _, text in self.lines())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escape(line)}</p>" for line in str(self).splitlines())

    def to_json(self) -> str:
        """The proof as JSON: see ``howsure schema improvement``."""
        rows = self.rows
        content = {
            "format": FORMAT,
            "howsure": __version__,
            "right": self.right,
            "ended": rows.ended,
            "summary": self.summary,
            "error_rate": ERROR_RATE,
            "seed": self.seed,
            "split": rows.split,
            "teaching": rows.teaching,
            "held_back": rows.held_back,
            "steps": [_step(step) for step in rows.steps],
            "before": rows.before,
            "after": rows.after,
        }
        text = json.dumps(
            plain(content, json_number), ensure_ascii=False, allow_nan=False, indent=1
        )
        return f"{text}\n"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the proof as JSON, whole or not at all.

        Raises
        ------
        InputError
            If another file than one of these is there, or the system refuses.
        """
        check_proof(path)
        atomic_write(path, self.to_json())


def improve(
    calibration: Any,
    *,
    until_right: bool = False,
    hold_back: float = 0.5,
    coverages: Sequence[float] = (),
    seed: int = 0,
    large: Large | None = None,
    **columns: Any,
) -> Improvement:
    """Recalibrate predictions with a held-out table, and verify on rows not used to fit.

    The rows are split: by units if there are at least 20, else by time, else at random. Some are
    used to select a recalibration, as in `howsure.assess`, and to fit it. The others are used only
    to verify: a step is confirmed if it passes the same criteria on them. With `until_right`, steps
    are repeated until no recalibration is advised or a step is not confirmed. Steps depend only on
    the fitting rows, and the first failure ends the sequence. So the probability of confirming any
    step if none helps is that of one test, 3.5 % (a fixed sequence: Maurer, Hothorn and Lehmacher
    1995).

    Parameters
    ----------
    calibration : path, data frame, mapping of arrays, or EvalSet
        Rows held out from training, at least 60, with y and predictions of one model. Of several
        kinds of prediction, the most informative is improved.
    until_right : bool
        Continue after the first step.
    hold_back : float
        Share of the rows used only to verify.
    coverages : sequence of float
        Nominal coverages to judge; the verdict reports the one nearest to 0.9.
    seed : int
        Fixes the split and all draws.
    large : Large, optional
        Memory, processes, a cluster.
    **columns
        Roles, as in `howsure.Table`.

    Returns
    -------
    Improvement
        ``print`` shows what was done; pass ``.fitted`` to `howsure.recalibrate` in place of
        calibration rows; ``.save`` writes the results.

    Raises
    ------
    InputError
        If an argument or the table breaks its rule, and the message names it.

    Examples
    --------
    >>> import numpy as np
    >>> import howsure
    >>> rng = np.random.default_rng(0)
    >>> held_out = {"y": rng.normal(size=2000), "mean": np.zeros(2000), "sd": np.full(2000, 0.5)}
    >>> found = howsure.improve(held_out, until_right=True)
    >>> found.fitted.methods, found.right
    ({'distributions': 'scale'}, True)
    >>> new = howsure.recalibrate({"mean": [0.0], "sd": [0.5]}, found.fitted)
    >>> bool(0.9 < new.predictions["recalibrated_sd"][0] < 1.1)
    True
    """
    _, calibration, reading, roles = split_roles(None, calibration, columns)
    teaching = held_out(calibration, (), roles, reading, large)
    rows = improved(
        teaching.rows, until_right=until_right, hold_back=hold_back, coverages=coverages, seed=seed
    )
    advised = [step.advice for step in rows.confirmed]
    needs = [teaching.unfitted(rows.held, advice.method, advice.by) for advice in advised]
    fitted = FittedRecalibration(
        recalibrators=rows.recalibrators,
        by=tuple(dict.fromkeys(name for fit in needs for name in fit.by)),
        features={name: kind for fit in needs for name, kind in fit.features.items()},
        embedding=next((fit.embedding for fit in needs if fit.embedding), ()),
        scales=TaughtScale.of(rows.held),
        facts=teaching.facts,
    )
    return Improvement(
        rows=rows, fitted=fitted, notes=(*teaching.notes, *teaching.facts), seed=seed
    )


def check_proof(path: str | os.PathLike[str]) -> None:
    """Refuse a place for the proof where another file is."""
    target = Path(path)
    if target.suffix.lower() != ".json":
        raise InputError(f"the proof needs a .json file, got {str(path)!r}")
    check_outputs([target])
    if not target.exists():
        return
    try:
        content = json.loads(target.read_bytes())
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{str(path)!r} exists and is not a proof: choose another name")


def _names(ids: Iterable[str]) -> list[str]:
    """What findings are called."""
    return [questions()[name].name or name for name in ids]


def _describe_step(step: ImprovementStep) -> str:
    """A step in words."""
    learnt = tuple(
        parameter for recalibrator in step.fitted for parameter in recalibrator.parameters
    )
    info = method_of(step.fitted[0].belief, step.advice.method)
    return words.proof(step.advice, learnt, step.proof, info)


def _step(step: ImprovementStep) -> dict[str, Any]:
    """A step as values that JSON knows."""
    advice, proof = step.advice, step.proof
    return {
        "method": advice.method,
        "by": advice.by,
        "since": advice.since,
        "confirmed": proof.accepted,
        "score": advice.score,
        "advised": {name: getattr(advice, name) for name in ("gain", "lower", "upper")},
        "proof": {
            name: getattr(proof, name)
            for name in ("gain", "lower", "upper", "p", "heals", "leaves", "harms", "reason")
        },
        "sentence": _describe_step(step),
    }
