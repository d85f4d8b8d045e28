"""Rows that come without labels, watched by a labelled reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.formats import number, p_words, percent
from howsure.core.progress import part_of, reported
from howsure.core.records import Curve, Direction, Notion, Record, ResultTable
from howsure.core.text import one_line
from howsure.core.threads import one_thread
from howsure.engine.finding import State
from howsure.inputs import Unlabelled
from howsure.inputs.roles import name_roles
from howsure.predictions import EvalSet, content_order
from howsure.report.assess import missing_fact
from howsure.report.assessment import Assessment, Basis, Later
from howsure.report.document import VerdictLine
from howsure.report.images import image_table
from howsure.report.no_rows import new_without_rows, of_many_rows
from howsure.stats.binomial import clopper_pearson, holm
from howsure.stats.kernels import tiles
from howsure.stats.neighbours import (
    Neighbours,
    fit_neighbours,
    more_outside,
    share_outside,
)
from howsure.topics.congruence.examples import (
    LOSSES,
    losses_of,
    map_table,
    rejection_curves,
)
from howsure.topics.congruence.laws import LAWS
from howsure.topics.congruence.null import NearErrors, NullReference
from howsure.topics.congruence.reference import CongruenceReference
from howsure.topics.congruence.view import (
    CongruenceOptions,
    Mode,
    congruence_mode,
    fitted_reference,
    reference_rows,
    right_model,
    support_rows,
)
from howsure.verdict import Finding

if TYPE_CHECKING:
    from howsure.inputs.encoders.tabular import TabularEncoder

# Rows that are scored at once: 20,000 by 2,000 reference rows are 320 MB in 64 bits.
ROWS_AT_ONCE = 20_000
"""Rows that are scored at once."""
# One of 100 right rows is set aside, so that the others lie where the reference knows. By hand;
# larger sets more aside.
SHARE_OUTSIDE = 0.01
"""Share of rows from the reference's own law that lie outside it; 1/(n + 1) of few rows."""
# A row must be significant by itself and by its neighbours, which is rarer than either.
LEVEL_OF_FLAGS = 0.03
"""Level at which a row is flagged: with rows outside, at most 5 % of right rows near an edge."""
LABELS = {
    "support_p_value": "p-value of being inside",
    "distance": "Distance, in sd",
    "cce": "CCE",
    "perfect": "CCE of a perfect model",
    "upper": "Upper limit of a perfect model's CCE",
    "p_value": "p-value",
    "near_p_value": "p-value, nearest rows",
}
"""What columns of rows are called, in every table and figure."""
_PLAIN = CongruenceOptions()


@frozen
class Judged:
    """New rows as inputs, which of them lie inside the reference, and errors there."""

    grid: FloatArray  # shape (m, d): inputs
    # shape (m,): of lying outside; to the 10th nearest reference row, in units of the inputs
    support_p_value: FloatArray
    distance: FloatArray
    outside: BoolArray  # shape (m,): rows where the model cannot be judged
    why: AnyArray  # shape (m,): what sets each row outside apart; empty inside
    beyond: AnyArray  # shape (m,): the number among the inputs that does, if one does
    # errors of the k rows inside beside a right model's; None where there is no such row, or the
    # reference states no distribution
    null: NullReference | None


@final
@frozen
class Monitor:
    """A reference that shows whether new inputs are similar to it, and if the model errs there.

    Made by `fit_monitor`. The conditional congruence error needs no label at the point where it
    is evaluated, so rows can be scored as they come. It needs a predictive distribution in the
    reference; only inputs are needed to find rows outside.
    """

    part: EvalSet  # the reference's rows
    # fitted on them, and how predictions are embedded; None where they state no distribution
    reference: CongruenceReference | None
    mode: Mode | None  # {"exact", "samples"}
    encoder: Any  # what turns features into inputs; None where the reference came with an embedding
    neighbours: Neighbours  # nearest rows of the reference, in units of the inputs
    # codes of the labels that the reference has, by feature; of constants too
    seen: Mapping[str, Mapping[Any, int]]
    seed: int  # of the draws
    options: CongruenceOptions = _PLAIN  # kernel, λ, draws

    @property
    def around(self) -> int:
        """How many reference rows stand for the surroundings of a row: √(2n)."""
        return max(1, min(self.part.n - 1, math.ceil(math.sqrt(2.0 * self.part.n))))

    @property
    def chance(self) -> float:
        """Share of rows from the reference's own law that lie outside."""
        return share_outside(self.part.n, SHARE_OUTSIDE)

    def inputs(
        self,
        features: Mapping[str, AnyArray] | None = None,
        embedding: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """The inputs of new rows, made as the reference's were."""
        if self.encoder is None:
            assert self.part.embedding is not None
            if embedding is None:
                raise InputError("new rows need an embedding, as the reference has one; none given")
            return as_matrix(embedding, "embedding", columns=self.part.embedding.shape[1])
        if not features:
            raise InputError("new rows need features, as the reference has them; none given")
        return np.asarray(self.encoder.transform(features), dtype=np.float64)

    @one_thread()
    def judge(
        self,
        features: Mapping[str, AnyArray] | None = None,
        embedding: npt.ArrayLike | None = None,
    ) -> Judged:
        """Find the rows outside the reference, and the errors at the others."""
        grid = self.inputs(features, embedding)
        codes = _codes(self.seen, features or {}, len(grid))
        p, distance = self.neighbours.outside(grid, codes)
        outside = p <= self.chance
        blind = self.reference is None or outside.all()
        null = None if blind else self.compare(grid[~outside])
        why, beyond = _reasons(self, features or {}, outside)
        return Judged(grid, p, distance, outside, why, beyond, null)

    @one_thread()
    def compare(self, grid: FloatArray) -> NullReference:
        """Errors at inputs beside those of a right model there."""
        assert self.reference is not None
        assert self.mode is not None
        with part_of(f"congruence of {self.part.model}"):
            parts = [
                right_model(
                    self.reference,
                    self.part,
                    self.mode,
                    grid=grid[rows],
                    seed=self.seed,
                    near=self.neighbours.weights(grid[rows], self.around),
                )
                for rows in reported(tiles(len(grid), ROWS_AT_ONCE), "scores of rows")
            ]
        return parts[0] if len(parts) == 1 else _joined(parts)


def scored(monitor: Monitor, judged: Judged, names: AnyArray) -> ResultTable:
    """The table ``monitor``: rows that were judged."""
    notes = (
        f"A row is outside if its distance to its {monitor.neighbours.near.shape[1]} nearest "
        f"reference rows is above that of all but {percent(monitor.chance)} of reference rows. "
        "It cannot be judged."
    )
    columns = {
        "row": names,
        "outside": judged.outside,
        "support_p_value": judged.support_p_value,
    }
    if monitor.reference is None:
        columns["distance"] = judged.distance
    else:
        errors = judged.null
        near = None if errors is None else errors.near
        for name, source, attribute in (
            ("cce", errors, "point_observed"),
            ("perfect", errors, "point_expected"),
            ("upper", errors, "point_upper"),
            ("p_value", errors, "point_p_value"),
            ("near_p_value", near, "point_p_value"),
        ):
            columns[name] = np.full(len(names), math.nan)
            if source is not None:
                columns[name][~judged.outside] = getattr(source, attribute)
        columns["flagged"] = (columns["p_value"] <= LEVEL_OF_FLAGS) & (
            columns["near_p_value"] <= LEVEL_OF_FLAGS
        )
        notes += (
            " A row inside is flagged if two errors are significant at "
            f"{percent(LEVEL_OF_FLAGS)}: its own CCE, and the CCE of its {monitor.around} nearest "
            f"reference rows. By chance, at most {percent(LEVEL_OF_FLAGS)} of rows without a fault "
            "are flagged."
        )
    columns["why"] = judged.why
    return ResultTable(
        name="monitor", columns=columns, labels=LABELS, model=monitor.part.model, notes=notes
    )


@one_thread()
def fit_monitor(
    reference: EvalSet,
    *,
    seed: int = 0,
    everything: bool = False,
    options: CongruenceOptions = _PLAIN,
) -> Monitor:
    """Fit a monitor on rows with features or an embedding; of errors where they state a law."""
    encoder: TabularEncoder | None = None
    reference = reference.take(content_order([reference]))
    if reference.embedding is None:
        if not reference.features:
            raise InputError(
                "the reference needs features or an embedding, got neither: name them with "
                f"{name_roles(features=...)} or {name_roles(embedding=...)}"
            )
        from howsure.inputs.encoders.tabular import tabular_encoder

        encoder = tabular_encoder(reference.features)
        reference = replace(reference, embedding=encoder.transform(reference.features))
    mode: Mode | None = None
    fitted: CongruenceReference | None = None
    if any(isinstance(prediction, LAWS) for prediction in reference.predictions):
        rows = reference_rows(reference, seed=seed, everything=everything)
        mode = congruence_mode([rows], options.draws, everything=True)
        fitted = fitted_reference(rows, mode, seed=seed, options=options)
    else:
        rows = support_rows(reference, seed=seed, everything=everything)
    codes_of_labels = {} if encoder is None else _known_labels(rows.features, encoder.dropped)
    assert rows.embedding is not None
    neighbours = fit_neighbours(rows.embedding, _codes(codes_of_labels, rows.features, rows.n))
    return Monitor(rows, fitted, mode, encoder, neighbours, codes_of_labels, seed, options)


def _known_labels(
    features: Mapping[str, AnyArray], dropped: Sequence[str]
) -> dict[str, dict[Any, int]]:
    """Codes of the labels of columns of labels, and of columns that vectors leave out."""
    columns = {
        name: column.tolist()
        for name, column in features.items()
        if column.dtype.kind == "O" or name in dropped
    }
    return {
        name: {label: code for code, label in enumerate(dict.fromkeys(column))}
        for name, column in columns.items()
    }


def _codes(
    codes_of_labels: Mapping[str, Mapping[Any, int]], features: Mapping[str, AnyArray], rows: int
) -> IntArray:
    """Labels as codes of the reference, −1 for those that it does not have."""
    out = np.zeros((rows, len(codes_of_labels)), dtype=np.int64)
    for column, (name, codes) in enumerate(codes_of_labels.items()):
        if name in features:  # a constant that no input is made of may be left out
            out[:, column] = [codes.get(label, -1) for label in np.asarray(features[name]).tolist()]
    return out


def _reasons(
    monitor: Monitor, features: Mapping[str, AnyArray], outside: BoolArray
) -> tuple[AnyArray, AnyArray]:
    """For each row outside the feature that is farthest beyond the reference, or that is new.

    In words; and the name of the feature where it is a number.
    """
    reasons = np.where(outside, "few reference rows nearby", "").astype(object)
    beyond_name = np.full(len(outside), "", dtype=object)
    rows = np.flatnonzero(outside)
    farthest = np.zeros(len(rows))
    for name, feature in monitor.part.features.items():
        if monitor.encoder is None or name not in features:
            continue
        values = np.asarray(features[name])[rows]
        if name in monitor.seen:
            new = [label not in monitor.seen[name] for label in values.tolist()]
            reasons[rows[new]], beyond_name[rows[new]] = f"new {name}", ""
            farthest[new] = math.inf
        elif feature.dtype.kind in "biuf":
            low, high, sd = float(feature.min()), float(feature.max()), float(feature.std())
            for words, end, beyond in (
                ("below", low, (low - values) / sd),
                ("above", high, (values - high) / sd),
            ):
                farther = beyond > farthest
                reasons[rows[farther]] = f"{name} {words} {number(end)}"
                beyond_name[rows[farther]] = name
                farthest[farther] = beyond[farther]
    return reasons, beyond_name


def _joined(blocks: Sequence[NullReference]) -> NullReference:
    """One comparison of several blocks of rows, whose replicates are the same worlds."""
    near_blocks = [block.near for block in blocks if block.near is not None]
    sizes = np.array([len(block.point_observed) for block in blocks], dtype=np.float64)

    def averages(parts: Sequence[Any], *names: str) -> dict[str, Any]:
        columns = {name: [getattr(block, name) for block in parts] for name in names}
        return {name: np.average(means, axis=0, weights=sizes) for name, means in columns.items()}

    def rows(parts: Sequence[Any], *names: str) -> dict[str, Any]:
        return {name: np.concatenate([getattr(block, name) for block in parts]) for name in names}

    level = blocks[0].level
    overall = averages(blocks, "observed", "replicates")
    observed, means = float(overall["observed"]), overall["replicates"]
    near = averages(near_blocks, "observed", "replicates", "shifted")
    ends = np.quantile(means, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return replace(
        blocks[0],
        observed=observed,
        expected=float(means.mean()),
        upper=float(np.quantile(means, level)),
        range=(float(ends[0]), float(ends[1])),
        p_value=float((1 + (means >= observed).sum()) / (len(means) + 1)),
        replicates=means,
        **rows(blocks, "point_observed", "point_expected", "point_upper", "point_p_value"),
        near=NearErrors(
            **{**near, "observed": float(near["observed"])},
            **rows(near_blocks, "point_observed", "point_p_value"),
        ),
    )


# ---- a report on rows that a monitor scored: which to distrust, and whether that served ----------

# A table that may be looked through; the CSV has all.
MAX_ROWS_SHOWN = 200
# Two rows of thumbnails.
MAX_PICTURES = 12
# The usual 90 %; at less, no fault found is no evidence.
MIN_POWER = 0.9
"""Share of worlds in which a bias of half an sd must show for no fault to be evidence of none."""
# Rows outside the reference that a report shows: what a person may look through.
MAX_ROWS_OUTSIDE = 50
"""Rows outside the reference that a report shows."""
# A fifth, as a policy might withhold. By hand; the page has the whole curve.
SHARE_WITHHELD = 0.2
"""Share of rows whose rejection the verdict tells."""
# A mean that five rows leave or not may be anything.
MIN_ROWS_WITHHELD = 5
"""The fewest rows withheld of which it tells."""
UNREAD = (
    "Errors refer to the reference's model at the new inputs. Predictions in the new table are "
    "used only for rows with y."
)
SUPPORT_ONLY = "The reference has no predictive distributions, so only inputs are judged."
_ONE_INSIDE = "The row is inside the reference."


@frozen
class Monitored:
    """Scores of all rows, and what there is to say of them."""

    table: ResultTable  # `monitor`, a line for each row
    # verdict, map, the rows of the highest errors; rejection where labels are there
    report: Assessment

    def columns(self, new: Unlabelled) -> dict[str, AnyArray]:
        """Scores beside the inputs, as columns of one table."""
        return _add_inputs(self.table, new)


@one_thread()
def monitored(
    monitor: Monitor,
    new: Unlabelled,
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
    no_rows: bool = False,
) -> Monitored:
    """Say which rows can be judged, and which of these to distrust, or only how many."""
    if no_rows:
        new = new_without_rows(new)
    judged = monitor.judge(new.inputs.features, new.inputs.embedding)
    table = scored(monitor, judged, new.inputs.row_names())
    findings = findings_of(monitor, judged, table)
    lines = [
        VerdictLine(finding.sentence, finding.state, finding.question, about=finding.id)
        for finding in findings
    ]
    curves: tuple[Curve, ...] = ()
    if new.labelled is not None and monitor.reference is not None:
        inside = ~judged.outside[new.places]
        scores = table.columns["cce"][new.places[inside]]
        if len(scores):
            labelled = new.labelled.take(np.flatnonzero(inside))
            labelled = replace(labelled, model=monitor.part.model)
            curves = rejection_curves(labelled, scores)
            lines += _rejection_lines(labelled, scores)
    lines.append(VerdictLine(_judged(monitor), "info", "Which predictions are judged?"))
    basis = Basis(
        records=(_record(monitor, judged),),
        curves=curves,
        tables=_tables(monitor, new, judged, table),
        facts={
            **_facts(monitor, new, judged),
            **(facts or {}),
            **missing_fact(new.images, new.inputs.row_names()),
        },
    )
    report = Assessment(
        lines=tuple(lines),
        findings=findings,
        brief=basis,
        whole=Later(None, basis),
        command=command,
        title=f"Which rows{_of(facts)} can be trusted?",
    )
    return Monitored(table, of_many_rows(report) if no_rows else report)


def _add_inputs(table: ResultTable, new: Unlabelled) -> dict[str, AnyArray]:
    columns = dict(table.columns)
    for name, value in {**new.inputs.features, **new.texts}.items():
        columns[name if name not in columns else f"{name} (input)"] = value
    return columns


def _judged(monitor: Monitor) -> str:
    return UNREAD if monitor.reference is not None else SUPPORT_ONLY


def _of(facts: Mapping[str, str] | None) -> str:
    source = (facts or {}).get("Source", "")
    return f" of {one_line(source, 60)}" if source else ""


def findings_of(monitor: Monitor, judged: Judged, table: ResultTable) -> tuple[Finding, ...]:
    """Are rows inside the reference, and is the model right around them? One Holm step for both."""
    count, rows = int(judged.outside.sum()), len(judged.outside)
    low, high = (float(end) for end in clopper_pearson(count, rows))
    chance = monitor.chance
    p_values = [more_outside(judged.support_p_value, monitor.part.n, SHARE_OUTSIDE)]
    near = None if judged.null is None else judged.null.near
    if near is not None:
        p_values.append(near.p_value)
    adjusted = holm(np.array(p_values)).tolist()
    support = _finding(
        id="outside",
        question="Are new rows similar to the reference?",
        good=count == 0 or high - chance <= 0.03,
        effect=count / rows - chance,
        lower=low - chance,
        upper=high - chance,
        p=p_values[0],
        p_adjusted=adjusted[0],
        tolerance=0.01,
        unit="share",
        model=monitor.part.model,
    )
    findings = [replace(support, sentence=_support_words(support, count, rows, chance))]
    if near is not None:
        usual = float(near.replicates.mean())
        ratio = near.observed / usual if usual > 0 else 1.0
        spread = 1.96 * float(near.replicates.std(ddof=1)) / usual if usual > 0 else math.inf
        inside, flagged = rows - count, int(table.columns["flagged"].sum())
        few = flagged <= math.ceil(special.bdtrik(0.95, inside, LEVEL_OF_FLAGS))
        congruence = _finding(
            id="congruence",
            question="Is the prediction correct near the rows inside?",
            good=near.power >= MIN_POWER and few,
            effect=ratio - 1.0,
            lower=ratio - 1.0 - spread,
            upper=ratio - 1.0 + spread,
            p=p_values[1],
            p_adjusted=adjusted[1],
            tolerance=0.02,
            unit="ratio − 1",
            model=monitor.part.model,
        )
        text = _near_words(congruence, flagged, inside, near.power)
        findings.append(replace(congruence, sentence=text))
    return tuple(sorted(findings, key=lambda finding: finding.state != "bad"))


def _finding(
    *, good: bool, effect: float, p: float, p_adjusted: float, tolerance: float, **fields: Any
) -> Finding:
    """An effect with what is known of it: a fault where it is proven and does harm."""
    state: State = "good" if good else "undecided"
    if p_adjusted < 0.05:
        state = "bad" if effect > tolerance else "negligible"
    elif p < 0.05 and effect > tolerance:
        state = "caution"
    return Finding(
        state=state,
        effect=effect,
        p=p,
        p_adjusted=p_adjusted,
        tolerance=tolerance,
        cost=abs(effect) / tolerance,
        where="",
        sentence="",
        **fields,
    )


def _support_words(finding: Finding, count: int, rows: int, chance: float) -> str:
    if count == 0:
        return f"All {rows:,} rows are inside the reference." if rows > 1 else _ONE_INSIDE
    if rows == 1:
        return "The row is outside the reference: the model cannot be judged there."
    text = f"{percent(count / rows)} of {rows:,} rows are outside the reference"
    if finding.state == "good":
        return f"{text}, consistent with chance ({percent(chance)}). These cannot be judged."
    return f"{text} (expected {percent(chance)}): the model cannot be judged there."


def _near_words(finding: Finding, flagged: int, rows: int, power: float) -> str:
    which = f"the {rows:,} rows" if rows > 1 else "the row"
    text = (
        f"Near {which} inside, the congruence error is {1.0 + finding.effect:.2f} × that of a "
        f"correctly specified model ({p_words(finding.p)})."
    )
    if flagged:
        text += (
            f" {percent(flagged / rows)} are flagged (by chance up to {percent(LEVEL_OF_FLAGS)})."
        )
    else:
        text += " No row is flagged."
    if finding.state == "good":
        return f"{text} A bias of half an sd would have been detected."
    if finding.state == "undecided" and power < MIN_POWER:
        return f"{text} The reference is too small to detect a bias of half an sd."
    return text


def _rejection_lines(evalset: EvalSet, scores: FloatArray) -> list[VerdictLine]:
    """What withholding the rows of highest error does to each loss; chance is told apart."""
    count = round(SHARE_WITHHELD * len(scores))
    if count < MIN_ROWS_WITHHELD:
        return []
    order = np.argsort(-scores, kind="stable")
    lines = []
    for name, losses in losses_of(evalset).items():
        withheld, retained = losses[order[:count]], losses[order[count:]]
        error = math.sqrt(sum(group.var(ddof=1) / len(group) for group in (withheld, retained)))
        gap = float(withheld.mean() - retained.mean())
        way = "lowers" if gap > 0 else "raises"
        way = "does not significantly change" if abs(gap) <= 1.96 * error else way
        best = np.sort(losses)[: len(retained)].mean()
        text = (
            f"Leaving out the {percent(SHARE_WITHHELD, 0)} of rows of highest CCE {way} the mean "
            f"{LOSSES[name]} of {len(scores):,} labelled rows: {losses.mean():.4g} before, "
            f"{retained.mean():.4g} after. The best possible order would give {best:.4g}."
        )
        lines.append(
            VerdictLine(text, "info", "Does leaving out suspect rows help?", about="rejection")
        )
    return lines


def _record(monitor: Monitor, judged: Judged) -> Record:
    null = judged.null
    options: dict[str, str | float] = {
        "mode": monitor.mode or "support",
        "reference_rows": float(monitor.part.n),
        "regularization": monitor.options.regularization,
        "rows_outside": float(judged.outside.sum()),
    }
    record = Record(
        metric="mean_cce",
        value=math.nan,
        direction=Direction.LOWER,
        notion=Notion.POINTWISE,
        model=monitor.part.model,
        source="embedding",
        reason=(
            "the reference has no predictive distributions"
            if monitor.reference is None
            else "every row is outside the reference"
        ),
        options=options,
    )
    if null is None:
        return record
    return replace(
        record,
        value=null.observed,
        n=float(len(null.point_observed)),
        null=null.expected,
        null_upper=null.upper,
        p=null.p_value,
        reason="",
        options={**options, "p_of": "a model correctly specified throughout the reference"},
    )


def _tables(
    monitor: Monitor, new: Unlabelled, judged: Judged, table: ResultTable
) -> tuple[ResultTable, ...]:
    """A map, the rows of the highest errors and their images, and the outermost rows."""
    inside = np.flatnonzero(~judged.outside)
    columns = _add_inputs(table, new)
    tables = [_map(monitor, new, judged, table)]
    if judged.null is not None:
        values = judged.null.point_observed
        order = inside[np.argsort(-values, kind="stable")]
        notes = table.notes
        if len(order) > MAX_ROWS_SHOWN:
            notes += f" The {MAX_ROWS_SHOWN} of {len(order):,} rows inside with the highest CCE."
        worst = {name: column[order[:MAX_ROWS_SHOWN]] for name, column in columns.items()}
        tables.append(replace(table, columns=worst, notes=notes))
        if new.images is not None:
            first = order[:MAX_PICTURES]
            rows = {name: column[first] for name, column in table.columns.items()}
            rows["kind"] = np.array(["new"] * len(first), dtype=object)
            chosen = replace(table, columns=rows)
            tables.append(image_table(chosen, new.images[first], most=MAX_PICTURES))
    if judged.outside.any():
        tables.append(outermost(judged, columns, monitor.part.model))
    return tuple(tables)


def _map(monitor: Monitor, new: Unlabelled, judged: Judged, table: ResultTable) -> ResultTable:
    """All new rows over a plane: first of the input by which most rows lie outside."""
    null, columns = judged.null, table.columns
    if null is not None:
        null = replace(null, point_expected=columns["perfect"], point_p_value=columns["p_value"])
    named = Counter(name for name in judged.beyond.tolist() if name)
    return map_table(
        judged.grid,
        columns.get("cce", np.full(new.inputs.n, math.nan)),
        null,
        new.inputs.row_names(),
        second=("Distance to the reference, in sd", judged.distance),
        features=new.inputs.features,
        first=[name for name, _ in named.most_common()],
        outside=judged.outside,
        layout=monitor.options.layout,
        model=monitor.part.model,
        seed=monitor.seed,
    )


def outermost(judged: Judged, columns: Mapping[str, AnyArray], model: str = "") -> ResultTable:
    """The table ``outside``: rows outside the reference, the farthest first."""
    rows = np.flatnonzero(judged.outside)
    rows = rows[np.argsort(-judged.distance[rows], kind="stable")]
    notes = "Rows outside the reference, farthest first; the model cannot be judged there."
    if len(rows) > MAX_ROWS_OUTSIDE:
        notes += f" The first {MAX_ROWS_OUTSIDE} of {len(rows):,}."
    rows = rows[:MAX_ROWS_OUTSIDE]
    columns = {**columns, "distance": judged.distance}
    first = ("row", "why", "support_p_value", "distance")
    inputs = [name for name in columns if name not in (*first, *_OF_ERRORS)]
    return ResultTable(
        name="outside",
        columns={name: columns[name][rows] for name in (*first, *inputs)},
        labels=LABELS,
        model=model,
        notes=notes,
    )


_OF_ERRORS = ("outside", "cce", "perfect", "upper", "p_value", "near_p_value", "flagged")
"""Columns that say nothing of rows outside."""


def _facts(monitor: Monitor, new: Unlabelled, judged: Judged) -> dict[str, str]:
    facts = {
        "Rows": f"{new.inputs.n:,}",
        "Reference": f"{monitor.part.n:,} labelled rows",
        "Rows outside": f"{int(judged.outside.sum()):,}",
        "Predictions": _judged(monitor),
        "Seed": str(monitor.seed),
    }
    if len(new.places):
        facts["Labelled rows"] = f"{len(new.places):,}"
    return facts
