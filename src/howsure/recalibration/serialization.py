"""What recalibration learnt, kept as a plain file and applied to other rows on another day."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self, final, get_args

import numpy as np

from howsure._version import __version__
from howsure.core.arrays import FloatArray, shortened
from howsure.core.classes import frozen
from howsure.core.convert import checked, field_hints, read_json
from howsure.core.errors import HowsureError, InputError, either
from howsure.core.files import atomic_write, check_outputs
from howsure.predictions import EvalSet, Intervals, LabelSets, Probabilities, Quantiles
from howsure.recalibration.base import POINT, Recalibrator, kinds_of
from howsure.recalibration.dispatch import METHODS, FittedMethods, InTurn, Recalibrated, applied

FORMAT = "howsure recalibration"
# Raised when what is saved changes so that this program could not read it.
VERSION = 1
# Bytes of a file: 256 MB, far more than any recalibration has, so that a wrong file is not read
# into memory.
_MAX_BYTES = 1 << 28
# Spreads apart, from where the units must differ: no model drifts so far, and units differ by 60
# or 1,000. By hand.
_MAX_SPREADS_APART = 20.0
_KINDS = "biuf"  # of arrays that are kept
_OF_CLASSES = {Probabilities.kind, LabelSets.kind}


@frozen(kw_only=True)
class TaughtScale:
    """Where the predictions of one kind lay when they were learnt from."""

    kind: str  # of the prediction
    center: float  # median of the point forecasts
    reach: float  # distance of their quartiles
    spread: float  # median of what each row says of its own spread; NaN where it says nothing

    @classmethod
    def of(cls, rows: EvalSet) -> tuple[Self, ...]:
        """The scales of all predictions of some rows, as far as they are finite."""
        made = []
        for kind in kinds_of(rows):
            middle, spread = _middle(rows, kind)
            if len(middle):
                low, center, high = (float(each) for each in np.quantile(middle, [0.25, 0.5, 0.75]))
                width = float(np.median(spread)) if len(spread) else math.nan
                made.append(cls(kind=kind, center=center, reach=high - low, spread=width))
        return tuple(made)

    @classmethod
    def among(cls, scales: Sequence[TaughtScale]) -> tuple[Self, ...]:
        """Of each kind the medians of the scales of parts, near enough to tell units apart."""
        medians = []
        for kind in dict.fromkeys(scale.kind for scale in scales):
            parts = np.array([(s.center, s.reach, s.spread) for s in scales if s.kind == kind])
            center, reach, _ = np.median(parts, axis=0).tolist()
            known = parts[~np.isnan(parts[:, 2]), 2]
            spread = float(np.median(known)) if len(known) else math.nan
            medians.append(cls(kind=kind, center=center, reach=reach, spread=spread))
        return tuple(medians)

    def unlike(self, other: TaughtScale) -> bool:
        """Whether predictions differ by more than new rows of the same units could."""
        near = self.reach + (0.0 if math.isnan(self.spread) else self.spread)
        if self.spread > 0 and other.spread > 0:
            ratio = other.spread / self.spread
            if not 1.0 / _MAX_SPREADS_APART <= ratio <= _MAX_SPREADS_APART:
                return True
        return near > 0 and abs(other.center - self.center) > _MAX_SPREADS_APART * near


@final
@frozen(kw_only=True)
class FittedRecalibration(FittedMethods):
    """Fitted methods of recalibration, with what the rows must hold that they are applied to.

    Attributes
    ----------
    recalibrators : tuple of Recalibrator
        One for each kind of prediction; none leaves predictions as they are.
    by : tuple of str
        Columns of groups that rows must have.
    features : mapping of str to {"number", "label"}
        Columns of inputs that rows must have, and what they hold.
    embedding : tuple of str
        Columns of the embedding that rows must have.
    scales : tuple of Scale
        Where the predictions of the calibration rows lay.
    sentence : str
        Why these methods.
    facts : tuple of str
        What to know of the rows that were learnt from, such as how many of how many they are.
    source : str
        The file that it was read from.

    Examples
    --------
    >>> import tempfile
    >>> from howsure.recalibration import recalibrate
    >>> wide = Intervals(np.full(99, -9.0), np.full(99, 9.0), coverage=0.9)
    >>> rows = EvalSet.checked(np.linspace(-1.0, 1.0, 99), wide)
    >>> fitted = FittedRecalibration(recalibrators=recalibrate(rows, rows).recalibrators)
    >>> path = Path(tempfile.mkdtemp()) / "fitted.json"
    >>> fitted.save(path)
    >>> again = FittedRecalibration.load(path)
    >>> again.apply(rows.take(np.arange(2))).evalset.predictions[0].interval(0.9)
    (array([-0.918, -0.918]), array([0.918, 0.918]))
    """

    recalibrators: tuple[Recalibrator, ...] = ()
    by: tuple[str, ...] = ()
    features: Mapping[str, Literal["number", "label"]] = field(default_factory=dict)
    embedding: tuple[str, ...] = ()
    scales: tuple[TaughtScale, ...] = ()
    sentence: str = ""
    facts: tuple[str, ...] = ()
    source: str = field(default="", compare=False)

    @property
    def by_rows(self) -> bool:
        """Whether rows can be served part by part, with the same result."""
        return all(recalibrator.by_rows for recalibrator in self.recalibrators)

    def apply(self, rows: EvalSet, notes: Sequence[str] | None = None) -> Recalibrated:
        """Rows with their predictions recalibrated, with given notes or its own. Reads no y.

        Raises
        ------
        InputError
            If the rows do not hold what the calibration rows held.
        """
        notes = self.notes(rows) if notes is None else tuple(notes)
        if not self.recalibrators:
            return Recalibrated(evalset=rows, recalibrators=(), notes=notes)
        try:
            return applied(self.recalibrators, rows, notes)
        except HowsureError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if not self.source:
                raise
            raise InputError(f"{self.source} cannot be applied: {error}") from error

    def notes(self, rows: EvalSet) -> tuple[str, ...]:
        """What to say of what was learnt, and where rows are unlike those it was learnt from."""
        return self.notes_on(kinds_of(rows), TaughtScale.of(rows))

    def notes_on(self, kinds: Sequence[str], scales: Sequence[TaughtScale]) -> tuple[str, ...]:
        """The notes on rows with these kinds of prediction, on these scales."""
        known = {scale.kind: scale for scale in self.scales}
        told = [
            f"The {now.kind} of the new rows are on a different scale from the calibration rows "
            f"(typical value {now.center:.4g}, calibration {known[now.kind].center:.4g}): check "
            "the units."
            for now in scales
            if now.kind in known and known[now.kind].unlike(now)
        ]
        fitted = set(self.methods)
        if fitted & _OF_CLASSES:  # the sets of class probabilities follow from these, or are made
            fitted |= _OF_CLASSES
        extra = [kind for kind in kinds if self.recalibrators and kind not in fitted]
        if extra:
            told.append(f"There is no fit for {', '.join(extra)}, which are omitted.")
        return (*self.facts, *told)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all; numbers are exact.

        Raises
        ------
        InputError
            If another file than one of these is there, or the system refuses.
        """
        check_place(path)
        atomic_write(path, f"{self.to_json()}\n")

    def to_json(self) -> str:
        """It as the text that `save` writes."""
        content = {"format": FORMAT, "version": VERSION, "howsure": __version__}
        return json.dumps({**content, "mend": _to_json(self)}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FittedRecalibration:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            If the file is none of these, or comes from a later version.
        """
        return cls._of(_content(path), str(path))

    @classmethod
    def from_json(cls, text: str) -> FittedRecalibration:
        """What `to_json` made.

        Raises
        ------
        InputError
            If the text is none of these, or comes from a later version.
        """
        return cls._of(_parsed(text, "the text"), "")

    @classmethod
    def _of(cls, content: Mapping[str, Any], source: str) -> FittedRecalibration:
        name = repr(source) if source else "the text"
        try:
            found = _from_json(content.get("mend"))
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(f"{name} is not a saved recalibration: {error}") from error
        if not isinstance(found, FittedRecalibration):
            raise InputError(f"{name} is not a saved recalibration: it has none")
        return replace(found, source=source)


def load_recalibration(path: str | os.PathLike[str]) -> FittedRecalibration:
    """Read a saved recalibration, as `FittedRecalibration.load` does.

    Raises
    ------
    InputError
        If the file is none, or comes from a later version.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "fitted.json"
    >>> FittedRecalibration(by=("region",)).save(path)
    >>> load_recalibration(path).by
    ('region',)
    """
    return FittedRecalibration.load(path)


def check_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place for a kept recalibration where another file is."""
    if Path(path).suffix.lower() != ".json":
        raise InputError(f"a recalibration is saved in a .json file, got {str(path)!r}")
    check_outputs([Path(path)])
    if Path(path).exists():
        try:
            _content(path)
        except InputError as error:
            raise InputError(
                f"{str(path)!r} exists and is not a saved recalibration: choose another name"
            ) from error


@np.errstate(invalid="ignore")  # of infinite ends
def _middle(rows: EvalSet, kind: str) -> tuple[FloatArray, FloatArray]:
    """Finite point forecasts of one kind, and finite spreads; empty where there are none."""
    none = np.zeros(0)
    if kind == POINT:
        return (none if rows.point is None else rows.point), none
    held = next(prediction for prediction in rows.predictions if prediction.kind == kind)
    try:
        if isinstance(held, Intervals | Quantiles):
            ends = (
                (held.lower, held.upper)
                if isinstance(held, Intervals)
                else (held.values[:, :1], held.values)
            )
            low, high = ends[0][:, -1], ends[1][:, -1]
            middle, spread = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        else:
            middle, spread = held.point(), held.sd()
    except HowsureError:
        return none, none
    return middle[np.isfinite(middle)], spread[np.isfinite(spread)]


def _content(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The JSON of a file with a kept recalibration, its form and version checked."""
    name = repr(str(path))
    try:
        file = Path(path)
        if not file.is_file():
            raise InputError(f"{name}: no such file")
        with file.open("rb") as opened:
            data = opened.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InputError(f"{name} is not a saved recalibration: it is too large")
        text = data.decode("utf-8")
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not a saved recalibration: {error}") from error
    return _parsed(text, name)


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except InputError as error:
        raise InputError(f"{name} is not a saved recalibration: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{name} is not a saved recalibration: its format is different")
    version = found.get("version")
    if type(version) is not int or version != VERSION:
        raise InputError(
            f"{name} has version {shortened(version)}, and this howsure reads {VERSION}: "
            f"recreate it with {either(_IN_PYTHON, _ON_COMMAND)}"
        )
    return found


_IN_PYTHON = "howsure.recalibrate(new, calibration).fitted.save(FILE)"
_ON_COMMAND = "howsure recalibrate NEW --calibration TABLE -o OUT --keep FILE"


def _to_json(value: Any) -> Any:
    """A value as JSON: tuples are lists, all else that JSON lacks is an object with one key."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in _KINDS:
            raise InputError(f"an array of {value.dtype} cannot be saved")
        items = [_to_json(item) for item in value.ravel().tolist()]
        return {"array": [value.dtype.str, list(value.shape), items]}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": [[_to_json(key), _to_json(item)] for key, item in value.items()]}
    name = _name(type(value))
    if _kept_classes().get(name) is type(value):
        held = {
            each.name: _to_json(getattr(value, each.name)) for each in fields(value) if each.init
        }
        held.pop("source", None)
        if not held.get("facts", True):  # which older versions do not know
            del held["facts"]
        return {name: held}
    raise InputError(f"only numbers, text and fitted methods can be saved, got {name}")


def _from_json(told: Any) -> Any:
    """The value that `_to_json` was given."""
    if isinstance(told, list):
        return tuple(_from_json(item) for item in told)
    if not isinstance(told, dict):
        return told
    ((name, held),) = told.items()
    if name == "float":
        if held not in ("inf", "-inf", "nan"):
            raise ValueError(f"a float must be inf, -inf or nan, got {shortened(held)}")
        return float(held)
    if name == "mapping":
        return {_from_json(key): _from_json(item) for key, item in held}
    if name == "array":
        return _array(*held)
    kind = _kept_classes().get(name)
    if kind is None:
        raise ValueError(f"{shortened(name)} is not a method of this howsure")
    if not isinstance(held, dict):
        raise ValueError(f"{name} is {shortened(held)}")
    values = {key: _from_json(item) for key, item in held.items()}
    hints = field_hints(kind)
    for key, value in values.items():
        if key not in hints:
            raise ValueError(f"{name} has no {shortened(key)}")
        checked(value, hints[key], f"{key} of {name}")
    return kind(**values)


def _array(dtype: Any, shape: Any, items: Any) -> Any:
    if not isinstance(dtype, str):
        raise ValueError(f"an array cannot have dtype {shortened(dtype)}")
    kind = np.dtype(dtype)
    if kind.kind not in _KINDS or kind.itemsize * len(items) > _MAX_BYTES:
        raise ValueError(f"an array of {kind} cannot be saved")
    return np.array([_from_json(item) for item in items], dtype=kind).reshape(shape)


@cache
def _kept_classes() -> dict[str, type[Any]]:
    """Every class that a kept recalibration may hold: fitted methods, and what they are made of."""
    found: dict[str, type[Any]] = {}
    waiting: list[Any] = [
        FittedRecalibration,
        InTurn,
        *(kind for info in METHODS.values() for kind in info.saves),
    ]
    while waiting:
        kind = waiting.pop()
        if found.get(_name(kind)) is kind:
            continue
        found[_name(kind)] = kind
        for hint in field_hints(kind).values():
            waiting.extend(p for p in _parts(hint) if isinstance(p, type) and is_dataclass(p))
    return found


_AS_KEPT = {
    "serialization.FittedRecalibration": "kept.Mend",
    "serialization.TaughtScale": "kept.TaughtScale",
    "base.FittedParameter": "base.Learnt",
    "affine.PointLocation": "affine.PointMover",
    "conformal.IntervalRecalibrator": "intervals.IntervalRecalibrator",
    "conformal._Column": "intervals._Column",
    "dispatch.InTurn": "in_turn.InTurn",
    "group.EaseCuts": "ease.EaseCuts",
    "group.GroupLocationScale": "group.GroupMover",
    "inputs.InputsLocationScale": "inputs.InputsMover",
    "intervals_from_distributions.DerivedRecalibrator": "derived.DerivedRecalibrator",
    "location_scale.AffineLocationScale": "moving.AffineMover",
    "recent.RecentLocationScale": "recent.RecentMover",
    "shape.CrudeRecalibrator": "crude.CrudeRecalibrator",
    "shape.IsotonicRecalibrator": "isotonic.IsotonicRecalibrator",
    "variance.VarianceLocationScale": "variance.VarianceMover",
}
"""Names that files say since they were first kept, whatever the classes are called now."""


def _name(kind: type[Any]) -> str:
    """A class by its module and its own name, as in ``isotonic.IsotonicRecalibrator``."""
    name = f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
    return _AS_KEPT.get(name, name)


def _parts(hint: Any) -> Iterator[Any]:
    """The hint, and all hints within it."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
