"""Classes: columns of their probabilities, columns of sets of them, and the class that came."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs.names import Roles, normal_form
from howsure.inputs.roles import BY_NAME, CellKey, name_roles
from howsure.inputs.source import MISSING_WORDS, listed
from howsure.predictions import LabelSets, Prediction, Probabilities
from howsure.predictions.probabilities import check_probabilities

_FAMILY = re.compile(
    r"\s*(?P<prefix>(?:recalibrated_)?(?:p|prob|proba|probability|softmax|logits?))[_\- ]"
    r"(?P<label>.+)",
    re.IGNORECASE,
)
_ALONE = re.compile(
    r"(recalibrated_)?(y_|pred_|predicted_)?(p|prob|proba|probability)|p_hat|y_pred_proba|logits?|log_odds"
)
_LOGIT = re.compile(r"logits?(_.+)?|log_odds")
CONFIDENCES = frozenset(BY_NAME["stated_confidence"].shown)
"""Names of columns of a stated confidence, where what was right stands beside them."""
_NO_CLASSES = frozenset({"value", "val", "values", "adj"})
"""What names after p of columns that hold p-values."""
_PAIRS = (
    *(("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("-1", "1")),
    *(("negative", "positive"), ("neg", "pos"), ("incorrect", "correct"), ("wrong", "right")),
)
"""Labels of two classes whose second is the positive one, whatever their case."""
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)%?")
_WHOLE = re.compile(r"(-?\d+)\.0+")
_SET = re.compile(
    r"(?:(?:label|prediction|predicted|pred|conformal)_?)?sets?(?:_?(?P<number>\d+(?:[._]\d+)?))?"
    r"(?:%|pct)?",
    re.ASCII,
)
_BRACKETS = {"[": "]", "{": "}", "(": ")"}
_WRAPPED = re.compile(r"(?:np|numpy)\.\w+\(([^()]*)\)|(?:frozen)?set\((.*)\)")
_ITEM = re.compile(
    r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,|;'\"]+))\s*(?:[,|;]|$|(?=['\"]))"
)
_CELL_MARKS = "|;,"


class MisfitError(InputError):
    """Columns that names alone took for those of classes do not hold such."""


def without_classes(flags: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of columns, and that none is of classes."""
    return {**flags, "softmax": "", "label_set": "", "stated_confidence": ""}


def family(names: Iterable[str]) -> dict[str, str]:
    """The columns whose names say that they are probabilities of classes, with the classes.

    After ``p``, numbers must count the classes from 0 or 1 on: others are levels of quantiles.
    """
    by_prefix: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FAMILY.fullmatch(name)
        if match is not None:
            by_prefix.setdefault(match["prefix"].lower(), {})[name] = match["label"].strip()
    several = {
        prefix: classes_of for prefix, classes_of in by_prefix.items() if len(classes_of) > 1
    }
    if len(several) != 1:
        return {}
    ((prefix, classes_of),) = several.items()
    numbers = [label for label in classes_of.values() if _NUMBER.fullmatch(label)]
    if numbers and prefix == "p":
        plain = [int(n) for n in numbers if n.isdecimal() and str(int(n)) == n]
        first = min(plain, default=-1)
        counted = sorted(plain) == [*range(first, first + len(classes_of))]
        if not counted or first not in (0, 1):
            return {}
    return classes_of


def positive_column(names: Iterable[str]) -> dict[str, str]:
    """The one column whose name says that it is the probability of a class, with the class.

    The class is empty where the name does not say which.
    """
    class_of: dict[str, str] = {}
    for name in names:
        match = _FAMILY.fullmatch(name)
        if _ALONE.fullmatch(normal_form(name)):
            class_of[name] = ""
        elif match is not None:
            label = match["label"].strip()
            level = _NUMBER.fullmatch(label) and label != "1"
            if not level and label.lower() not in _NO_CLASSES:
                class_of[name] = label
    return class_of if len(class_of) == 1 else {}


def correctness(names: Iterable[str]) -> tuple[str, str] | None:
    """The columns of a stated confidence and of what was right, if there is one of each."""
    stated = [name for name in names if normal_form(name) in CONFIDENCES]
    right = [name for name in names if normal_form(name) in BY_NAME["y"].later.split()]
    return (stated[0], right[0]) if len(stated) == len(right) == 1 else None


def labels_of(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The classes that columns of probabilities are named after.

    What a pattern leaves open; else what follows the prefix that all share; else the names.
    """
    for pattern in patterns:
        if pattern.count("*") == 1 and not re.search(r"[?\[]", pattern):
            form = re.compile(translate(pattern).replace(".*", "(.*)", 1))
            matches = [form.match(name) for name in names]
            if all(matches):
                return tuple(label_text(match[1]) for match in matches if match)
    matches = [_FAMILY.fullmatch(name) for name in names]
    if all(matches) and len({match["prefix"].lower() for match in matches if match}) == 1:
        return tuple(label_text(match["label"]) for match in matches if match)
    return tuple(map(label_text, names))


def set_coverage(plain: str) -> tuple[bool, float | None]:
    """Whether a name in normal form is that of a column of label sets, and its coverage."""
    match = _SET.fullmatch(plain)
    if match is None:
        return False, None
    if match["number"] is None:
        return True, None
    number = float(match["number"].replace("_", "."))
    share = number if number < 1 else round(number / 100, 12)
    return 0 < share < 1, share


def label_text(value: Any) -> str:
    """What a class is called: a whole number without a point, text without spaces around it."""
    if isinstance(value, float | np.floating) and math.isfinite(value):
        return str(int(value)) if value == int(value) else f"{value:.12g}"
    return _without_point(str(value).strip())


@lru_cache(maxsize=1 << 16)  # sets have the same few labels, over and over
def _without_point(text: str) -> str:
    match = _WHOLE.fullmatch(text)
    return match[1] if match is not None else text


def parse_sets(cells: Sequence[Any], name: str) -> list[tuple[str, ...] | None]:
    """The sets of labels in cells, None where one is missing.

    In brackets as JSON, Python, or NumPy write lists and sets, or with ``|``, ``;`` or commas
    between; a cell without text is the empty set.
    """
    texts = [str(cell).strip() for cell in cells if isinstance(cell, str)]
    bare = [text for text in texts if text and text[0] not in _BRACKETS]
    mark = next((mark for mark in _CELL_MARKS if any(mark in text for text in bare)), "|")
    parsed_sets = []
    for cell in cells:
        labels = _parsed(cell, mark, name)
        if labels is not None and len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(
                f"column {quoted(name)} must contain each label of a set once, got "
                f"{quoted(twice)} twice in {quoted(str(cell))}"
            )
        parsed_sets.append(labels)
    all_labels = {label for labels in parsed_sets for label in labels or ()}
    for text in bare:
        for other in _CELL_MARKS.replace(mark, "") if mark not in text else "":
            parts = {label_text(piece) for piece in text.split(other)}
            if len(parts) > 1 and parts <= all_labels:
                raise InputError(
                    f"column {quoted(name)} must have one separator between labels, got "
                    f"{quoted(mark)} in some cells and {quoted(other)} in {quoted(text)}"
                )
    return parsed_sets


def _parsed(cell: Any, mark: str, name: str) -> tuple[str, ...] | None:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, list | tuple | set | frozenset):
        if any(member is None for member in cell):
            raise InputError(f"column {quoted(name)} must contain sets of labels, got {cell!r}")
        return tuple(map(label_text, cell))
    text = str(cell).strip()
    if text in MISSING_WORDS and text:
        return None
    text = "" if text == "∅" else text
    while (match := _WRAPPED.search(text)) is not None:
        text = f"{text[: match.start()]}{match[1] or match[2] or ''}{text[match.end() :]}".strip()
        text = text or "[]"
    if text[:1] not in _BRACKETS:
        return tuple(label_text(piece) for piece in text.split(mark) if piece.strip())
    if not text.endswith(_BRACKETS[text[0]]):
        raise InputError(
            f"column {quoted(name)} must contain sets of labels such as cat|dog or {{cat, dog}}, "
            f"got {quoted(str(cell))}"
        )
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        members = _items(text[1:-1].strip(), str(cell), name)
    members = [] if members == {} else members
    if not isinstance(members, list) or any(isinstance(member, list | dict) for member in members):
        raise InputError(
            f"column {quoted(name)} must contain sets of labels, got {quoted(str(cell))}"
        )
    return tuple(map(label_text, members))


def _items(inner: str, cell: str, name: str) -> list[str]:
    """What stands between brackets; numbers may have spaces alone between, as NumPy writes them."""
    if re.fullmatch(r"[\d.\s-]+", inner):
        return inner.split()
    items, position = [], 0
    while position < len(inner):
        match = _ITEM.match(inner, position)
        if match is None or match.end() == position:
            raise InputError(
                f"column {quoted(name)} must contain sets of labels such as cat|dog or {{cat, "
                f"dog}}, got {quoted(cell)}"
            )
        quoted_item = match[1] if match[1] is not None else match[2]
        item = match[3] if quoted_item is None else re.sub(r"\\(.)", r"\1", quoted_item)
        items.append(item)
        position = match.end()
    return [item for item in items if item.strip()]


def ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Different labels in one order, whatever table they come from: numbers by size, else text."""
    every = set(labels)
    if all(_NUMBER.fullmatch(label) for label in every):
        return tuple(sorted(every, key=lambda label: (float(label.rstrip("%")), label)))
    return tuple(sorted(every))


def read_classes(roles: Roles, columns: dict[CellKey, Any]) -> tuple[str, ...]:
    """The classes of columns, in one order; y becomes the number of the observed class.

    What names alone took for classes raises `MisfitError` where rows of probabilities do not sum
    to 1, or no y is among the labels.
    """
    guessed = not roles.guessed.isdisjoint(("softmax", "label_set", "stated_confidence"))
    refused = MisfitError if guessed else InputError
    set_name, y_name = roles.column("label_set") or "", roles.column("y") or ""
    sets = columns["sets", set_name].labels.tolist() if set_name else []
    outcomes = columns["label", y_name] if y_name else None
    outcome_labels = [] if outcomes is None else list(map(label_text, outcomes.labels.tolist()))
    within = [label for labels_of_set in sets for label in labels_of_set]
    alone = (*roles["stated_confidence"], *(roles["softmax"] if len(roles["softmax"]) == 1 else ()))
    _read_logits(roles, columns)
    stated = {
        label: columns["number", name]
        for label, name in zip(roles.labels, roles["softmax"], strict=True)
    }
    labels: tuple[str, ...]
    if alone:
        labels = _two_classes(roles, None if outcomes is None else outcome_labels, refused)
        if roles["stated_confidence"]:
            scaled = _share_of_confidence(columns["number", alone[0]], alone[0])
            columns["number", alone[0]] = scaled
            outcome_labels = [_truth(label, labels, y_name) for label in outcome_labels]
        _check_share(columns["number", alone[0]], alone[0], refused)
        stated = dict.fromkeys(labels, columns["number", alone[0]])
    elif stated:
        table = np.column_stack(list(stated.values()))
        try:
            check_probabilities(
                table[~np.isnan(table).any(axis=1)], f"class probabilities ({listed(stated, 4)})"
            )
        except InputError as error:
            sums = table[~np.isnan(table).any(axis=1)].sum(axis=1)
            several = table.min() >= 0.0 and table.max() <= 1.0 and np.ptp(sums) > 0.01
            way = "; where a row may have several labels, assess each label by its own column"
            raise refused(f"{error}{way if several else ''}") from error
        labels = ordered(stated)
        strange = [label for label in dict.fromkeys(within) if label not in stated]
        if strange:
            raise InputError(
                f"column {quoted(set_name)} must contain labels of the columns of class "
                f"probabilities ({listed(labels, 6)}), got {listed(strange, 3)}"
            )
    else:
        labels = ordered((*within, *outcome_labels))
        if len(labels) < 2:
            raise refused(
                f"label sets need at least two classes, got {listed(labels) or 'none'} in "
                f"{quoted(set_name)} and y"
            )
    if outcomes is None:
        return labels
    classes = set(stated or within)
    outside = [label for label in outcome_labels if label not in classes]
    if outcome_labels and len(outside) == len(outcome_labels):
        raise refused(
            f"y ({quoted(y_name)}) must contain labels of the classes "
            f"({listed(ordered(classes), 6)}), but none of its {len(outcome_labels)} labels is a "
            f"class (first {listed(outside, 3)})"
        )
    if stated and outside:
        strange_codes = [code for code, label in enumerate(outcome_labels) if label not in classes]
        wrong = np.isin(outcomes.codes, strange_codes)
        raise InputError(
            f"y ({quoted(y_name)}) must contain labels of the classes ({listed(labels, 6)}), got "
            f"{listed(outside, 3)} in {int(wrong.sum())} rows (first at row "
            f"{int(np.argmax(wrong))}, counting from 0); {name_roles(softmax='')} ignores the "
            "columns of class probabilities"
        )
    number = {label: float(code) for code, label in enumerate(labels)}
    numbers = np.array([*(number[label] for label in outcome_labels), math.nan])
    columns["number", y_name] = numbers[outcomes.codes]
    return labels


def _two_classes(
    roles: Roles, outcomes: Sequence[str] | None, refused: type[InputError]
) -> tuple[str, str]:
    """The negative and the positive class of one column of probabilities."""
    if roles["stated_confidence"]:
        return "wrong", "right"
    (name,), (stated,) = roles["softmax"], roles.labels
    if outcomes is None:
        return (f"not {stated}", stated) if stated else ("0", "1")
    y_name = roles.column("y") or "y"
    if len(outcomes) > 2:
        raise refused(
            f"y ({quoted(y_name)}) must have two classes where {quoted(name)} alone is a "
            f"probability, got {len(outcomes)} ({listed(outcomes, 4)}); give one column per class"
        )
    positive = [label for label in outcomes if label.casefold() == stated.casefold()]
    if positive:
        negative = [label for label in outcomes if label not in positive]
        usual = {pair[1]: pair[0] for pair in _PAIRS[::-1]}
        return (*negative, usual.get(positive[0].casefold(), f"not {positive[0]}"))[0], positive[0]
    plain = {label.casefold() for label in outcomes}
    pair = next((pair for pair in _PAIRS if plain <= set(pair)), None)
    if pair is None or (stated and not any(stated.casefold() in other for other in _PAIRS)):
        raise refused(
            f"y ({quoted(y_name)}) has the labels {listed(outcomes, 4)}, and the name "
            f"{quoted(name)} does not say which of them it is the probability of: call it after "
            f"the class, such as p_{outcomes[-1] if outcomes else 'yes'}"
        )
    spelled = {label.casefold(): label for label in outcomes}
    return spelled.get(pair[0], pair[0]), spelled.get(pair[1], pair[1])


def _truth(label: str, labels: tuple[str, ...], name: str) -> str:
    """Whether an answer was right, as one of two classes."""
    for pair in _PAIRS:
        if label.casefold() in pair:
            return labels[pair.index(label.casefold())]
    raise InputError(
        f"with a confidence, y ({quoted(name)}) must say whether the answer was right, by 0 and 1 "
        f"or true and false, got {quoted(label)}; for the probability of a class, use softmax "
        "(--softmax)"
    )


def _share_of_confidence(stated: FloatArray, name: str) -> FloatArray:
    """Confidences as shares: of 100 where any is above 1."""
    finite = stated[~np.isnan(stated)]
    if not len(finite) or finite.max() <= 1.0:
        return stated
    inner = (finite > 0.0) & (finite < 1.0)
    if finite.max() > 100.0 or inner.any():
        raise InputError(
            f"{quoted(name)} must be from 0 to 1, or from 0 to 100, got values from "
            f"{finite.min():g} to {finite.max():g}"
            + (", some between 0 and 1: the scale is unclear" if inner.any() else "")
        )
    return stated / 100.0


def _check_share(stated: FloatArray, name: str, refused: type[InputError]) -> None:
    """Raise where one column of probabilities leaves [0, 1]."""
    outside = (stated < 0.0) | (stated > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        percent = not (stated < 0.0).any() and not (stated > 100.0).any()
        way = "divide percent by 100" if percent else "call log-odds logit"
        raise refused(
            f"{quoted(name)} must contain probabilities from 0 to 1, got {stated[row]:g} (first at "
            f"row {row}, counting from 0): {way}"
        )


def _read_logits(roles: Roles, columns: dict[CellKey, Any]) -> None:
    """Make probabilities of columns whose names say that they are logits."""
    names = roles["softmax"]
    if not names or not all(_LOGIT.fullmatch(normal_form(name)) for name in names):
        return
    table = np.column_stack([columns["number", name] for name in names])
    table = np.hstack([table, np.zeros_like(table)]) if len(names) == 1 else table
    for name, column in zip(names, special.softmax(table, axis=1).T, strict=False):
        columns["number", name] = column


def moved(y: FloatArray, labels: Sequence[str], onto: Sequence[str]) -> FloatArray:
    """Class numbers over labels as class numbers over others that hold them all."""
    code_of = {label: float(code) for code, label in enumerate(onto)}
    numbers = np.array([*(code_of[label] for label in labels), math.nan])
    return np.asarray(numbers[np.where(np.isnan(y), len(labels), y).astype(np.int64)])


def class_predictions(
    labels: Sequence[str],
    stated: Mapping[str, FloatArray],
    sets: tuple[IntArray, Sequence[tuple[str, ...]]] | None,
    coverage: float | None,
) -> tuple[Prediction, ...]:
    """The probabilities, and the sets: those in a column, else of a coverage that is asked for.

    Sets that are not those of the probabilities, such as conformal ones, are what is judged.
    """
    probabilities = None
    if len(stated) == 1:
        (column,) = stated.values()
        probabilities = Probabilities(column, labels)
    elif stated:
        table = np.column_stack([stated[label] for label in labels])
        probabilities = Probabilities(table, labels)
    if probabilities is not None and sets is None and coverage is None:
        return (probabilities,)
    predicted_sets = label_sets(labels, probabilities, sets, coverage)
    if probabilities is None or not predicted_sets.own:
        return (predicted_sets,)
    return probabilities, predicted_sets


def label_sets(
    labels: Sequence[str],
    probabilities: Probabilities | None,
    sets: tuple[IntArray, Sequence[tuple[str, ...]]] | None,
    coverage: float | None,
) -> LabelSets:
    """The sets in a column, else those from the class probabilities."""
    if coverage is None:
        raise InputError(
            f"label sets need their nominal coverage: pass {name_roles(coverage=0.9)}, or name the "
            "column set_90"
        )
    claimed = None if probabilities is None else LabelSets.likeliest(probabilities, coverage)
    if sets is None and claimed is not None:
        return claimed
    codes, different = sets or (np.zeros(0, dtype=np.int64), ())
    column_of = {label: column for column, label in enumerate(labels)}
    within = np.zeros((len(different), len(labels)), dtype=np.bool_)
    for row, labels_of_set in zip(within, different, strict=True):
        row[[column_of[label] for label in labels_of_set]] = True
    members = within[codes]
    if claimed is not None and np.array_equal(claimed.members, members):
        return claimed
    table = None if probabilities is None else probabilities.table
    return LabelSets(members, coverage, table, labels)
