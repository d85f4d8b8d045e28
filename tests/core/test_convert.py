"""Plain values become what annotations ask for, or the refusal says what was wrong and where."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure.core.arrays import FloatArray
from howsure.core.convert import (
    Bound,
    Checked,
    Count,
    Fraction,
    NonNegative,
    Positive,
    check_whole,
    checked,
    filled,
    from_options,
    json_number,
    option_names,
    packed,
    plain,
    read_json,
    restored,
    unpacked,
)
from howsure.core.errors import InputError

Move = Literal["offset", "scale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Checked):
    draws: Count | None = 1
    move: Move = "offset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Checked):
    rows: Count
    rate: Positive = 0.5
    share: Fraction = 0.9
    layers: Annotated[tuple[Count, ...], filled] = (4,)
    moves: tuple[Move, ...] | None = None
    levels: Mapping[Move, tuple[float, ...]] = field(default_factory=dict)
    warm: bool = True
    inner: Inner = field(default_factory=Inner)


def test_options_within_stand_among_those_without() -> None:
    assert option_names(Outer) == (
        *("rows", "rate", "share", "layers", "moves", "levels", "warm", "draws", "move"),
    )
    given = {"rows": np.int64(3), "layers": [8, 4], "draws": None, "levels": {"scale": [0.5]}}
    made = from_options(Outer, given, "option")
    assert made == Outer(rows=3, layers=(8, 4), levels={"scale": (0.5,)}, inner=Inner(draws=None))
    assert type(made.rows) is int
    assert plain(made)["inner"] == {"draws": None, "move": "offset"}
    assert Outer(**plain(made)) == made


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 0}, r"^rows must be a whole number of at least 1, got 0$"),
        ({"rows": True}, r"^rows must be a whole number of at least 1, got True$"),
        ({"rows": 2.0}, r"^rows must be a whole number of at least 1, got 2\.0$"),
        ({"rows": "3"}, r"^rows must be a whole number of at least 1, got '3'$"),
        ({"rate": 0}, r"^rate must be above 0, got 0$"),
        ({"rate": math.nan}, r"^rate must be above 0, got nan$"),
        ({"rate": math.inf}, r"^rate must be above 0, got inf$"),
        ({"rate": True}, r"^rate must be above 0, got True$"),
        ({"share": 90}, r"^share must be strictly between 0 and 1, got 90; did you mean 0.9\?$"),
        ({"layers": 7}, r"^layers must be a list of whole numbers, got 7$"),
        ({"layers": []}, r"^layers must not be empty$"),
        ({"layers": [7, 0]}, r"^layers must be a whole number of at least 1, got 0$"),
        ({"moves": "scale"}, r"^moves must be a list of names or none, got 'scale'$"),
        ({"moves": ["scal"]}, r"^moves must be one of offset, scale, got 'scal'; near: scale$"),
        ({"levels": [1.0]}, r"^levels must be a table, got \[1\.0\]$"),
        ({"levels": {"scal": [1.0]}}, r"^levels must be one of offset, scale, got 'scal'"),
        ({"levels": {"scale": ["a"]}}, r"^levels of scale must be a number, got 'a'$"),
        ({"warm": 1}, r"^warm must be true or false, got 1$"),
        ({"draws": 0}, r"^draws must be a whole number of at least 1 or none, got 0$"),
        ({"move": "scal"}, r"^move must be one of offset, scale, got 'scal'; near: scale$"),
        ({"move": 3}, r"^move must be one of offset, scale, got 3$"),
        ({"mov": "scale"}, r"^option of x must be one of rows, .*, got 'mov'; near: move, moves$"),
        ({"inner": {}}, r"^option of x must be one of .*got 'inner'"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        from_options(Outer, {"rows": 1, **options}, "option of x")


@pytest.mark.parametrize(
    ("bound", "kind", "words"),
    [
        (Bound(0.0, 1.0, "[]"), float, "be in [0, 1]"),
        (Bound(0.0, 1.0, "(]"), float, "be in (0, 1]"),
        (Bound(2), int, "be a whole number of at least 2"),
        (Bound(3, 200, "[]"), int, "be a whole number of at least 3 and at most 200"),
        (Bound(1.0, ends="()"), float, "be above 1"),
        (Bound(ends="()"), float, "be a finite number"),
    ],
)
def test_a_range_is_told_in_words(bound: Bound, kind: type, words: str) -> None:
    assert bound.words(kind) == words


@given(st.floats(allow_nan=True), st.floats(-5, 5), st.floats(0, 5), st.sampled_from("[("))
def test_a_range_holds_what_lies_in_it(value: float, low: float, width: float, end: str) -> None:
    high = low + width
    inside = low < value < high or (value == low and end == "[")
    bound = Annotated[float, Bound(low, high, f"{end})")]
    if inside and value < high:
        assert checked(value, bound, "v") == value
    else:
        with pytest.raises(InputError, match=r"^v must be in"):
            checked(value, bound, "v")


@given(st.integers() | st.floats() | st.booleans() | st.text() | st.none())
def test_whole_numbers_alone_are_whole_numbers(value: Any) -> None:
    if type(value) is int and 0 <= value <= 10:
        assert check_whole(value, "n", 0, 10) == value
    else:
        with pytest.raises(
            InputError, match=r"^n must be a whole number of at least 0 and at most 10, got"
        ):
            check_whole(value, "n", 0, 10)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("3", Count, 3),
        ("1e-3", float, 1e-3),
        ("none", float | None, None),
        ("0.9, 0.5", tuple[float, ...], (0.9, 0.5)),
        ("[1, 2]", tuple[int, int], (1, 2)),
        ("true", bool, True),
        ("0.5", str, "0.5"),
        ("median", str | float, "median"),
    ],
)
def test_text_is_read_for_a_shell_alone(text: str, hint: Any, value: Any) -> None:
    assert checked(text, hint, "v", text=True) == value
    if not isinstance(value, str):
        with pytest.raises(InputError, match=r"^v must be"):
            checked(text, hint, "v")


def test_what_is_no_plain_value_is_refused() -> None:
    with pytest.raises(InputError, match="numbers, text, lists and tables, got <object"):
        plain({"a": [object()]})


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    name: str
    values: Mapping[str, float]
    rows: Mapping[str, FloatArray]
    where: npt.NDArray[np.int64] | None = None
    notes: tuple[str, ...] = ()
    made: int = field(init=False, default=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    first: Leaf | None
    leaves: tuple[Leaf, ...]
    options: Mapping[str, str | float]


NUMBERS = st.lists(st.floats(width=64), max_size=4)
LEAVES = st.builds(
    Leaf,
    name=st.text(max_size=3),
    values=st.dictionaries(st.sampled_from("abc"), st.floats()),
    rows=st.dictionaries(st.sampled_from("abc"), NUMBERS.map(lambda v: np.array(v, float))),
    where=st.none() | st.just(np.arange(3)),
    notes=st.lists(st.text(max_size=2), max_size=2).map(tuple),
)


def bits(leaf: Leaf | None) -> Any:
    if leaf is None:
        return None
    told = (leaf.name, leaf.notes, None if leaf.where is None else leaf.where.tolist())
    values = {k: np.float64(v).tobytes() for k, v in leaf.values.items()}
    return told, values, {k: v.tobytes() for k, v in leaf.rows.items()}, list(leaf.rows)


@given(
    st.builds(
        Tree,
        first=st.none() | LEAVES,
        leaves=st.lists(LEAVES, max_size=3).map(tuple),
        options=st.just({"kernel": "rbf", "draws": 2.0}),
    )
)
def test_what_is_packed_is_unpacked_bit_by_bit(tree: Tree) -> None:
    arrays, facts = packed(tree)
    again = unpacked(Tree, arrays, facts)
    assert bits(again.first) == bits(tree.first)
    assert list(map(bits, again.leaves)) == list(map(bits, tree.leaves))
    assert again.options == tree.options
    assert all(isinstance(held, np.ndarray) for held in arrays.values())
    assert "where" not in str(facts)
    assert "made" not in str(facts)


class Side(Enum):
    LOW = 1
    HIGH = "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deep:
    trees: tuple[Tree, ...] = ()
    ends: tuple[FloatArray, FloatArray] | None = None
    steps: list[npt.NDArray[np.float32]] = field(default_factory=list)
    why: Mapping[tuple[str, int], float | None] = field(default_factory=dict)
    leaves: Mapping[str, Leaf] = field(default_factory=dict)
    shapes: Mapping[Literal["a", "b"], tuple[int, ...]] = field(default_factory=dict)
    side: Side | None = None
    rate: Positive = 1.0
    free: Any = None


FLOATS = st.lists(st.floats(), max_size=3).map(lambda v: np.array(v, float))


@given(
    st.builds(
        Deep,
        trees=st.lists(
            st.builds(Tree, first=LEAVES, leaves=st.just(()), options=st.just({})), max_size=2
        ).map(tuple),
        ends=st.none() | st.tuples(FLOATS, FLOATS),
        steps=st.lists(st.just(np.array([0.1, np.nan], np.float32)), max_size=2),
        why=st.dictionaries(
            st.tuples(st.text(max_size=2), st.integers()), st.none() | st.floats(), max_size=2
        ),
        leaves=st.dictionaries(st.sampled_from("ab"), LEAVES),
        shapes=st.dictionaries(
            st.sampled_from("ab"), st.lists(st.integers(), max_size=2).map(tuple)
        ),
        side=st.none() | st.sampled_from(Side),
        rate=st.floats(min_value=0.0, exclude_min=True),
        free=st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
            max_leaves=4,
        ),
    )
)
def test_dataclasses_within_come_back_bit_by_bit_through_a_store(deep: Deep) -> None:
    arrays, facts = packed(deep)
    again = unpacked(Deep, arrays, json.loads(json.dumps(facts)))
    for name in ("steps", "ends"):
        ours, theirs = getattr(again, name) or (), getattr(deep, name) or ()
        assert type(ours) is type(theirs)
        assert [(v.dtype, v.tobytes()) for v in ours] == [(v.dtype, v.tobytes()) for v in theirs]
    assert [bits(tree.first) for tree in again.trees] == [bits(tree.first) for tree in deep.trees]
    assert {k: bits(v) for k, v in again.leaves.items()} == {
        k: bits(v) for k, v in deep.leaves.items()
    }
    for name in ("why", "shapes", "side", "rate", "free"):  # repr tells -0.0 and NaN apart
        assert repr(getattr(again, name)) == repr(getattr(deep, name))


@dataclass(frozen=True)
class Odd:
    held: Any = None
    leaf: Leaf | None = None
    rows: FloatArray | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twig(Leaf):
    pass


@pytest.mark.parametrize(
    ("odd", "place"),
    [
        (Odd(held=object()), "held"),
        (Odd(held={"a": [(1, 2)]}), "held.a.0"),  # would come back as a list
        (Odd(held=np.zeros(2)), "held"),
        (Odd(held=Side.LOW), "held"),
        (Odd(leaf=Twig(name="", values={}, rows={})), "leaf"),
        (Odd(rows=[1.0]), "rows"),  # type: ignore[arg-type]
        (Odd(rows=np.array(["a"])), "rows"),
        (Odd(values={"a": {1}}), "values.a"),
        (Odd(numbers={"a": None}), "numbers"),  # type: ignore[dict-item]
    ],
)
def test_what_would_not_come_back_is_not_packed(odd: Any, place: str) -> None:
    with pytest.raises(InputError, match=rf"^{place}(\.a)? must be"):
        packed(odd)
    with pytest.raises(InputError, match="the object to pack must be a dataclass, got 3"):
        packed(3)


@dataclass(frozen=True)
class Nested:
    rows: Mapping[str, Mapping[str, FloatArray]]


def test_two_arrays_of_one_place_are_not_packed() -> None:
    with pytest.raises(InputError, match="must not have the same place, got 'rows/a/b/c' twice"):
        packed(Nested({"a": {"b/c": np.zeros(1)}, "a/b": {"c": np.zeros(1)}}))


def test_rules_of_aliases_are_those_of_their_names() -> None:
    assert checked(0, NonNegative, "v") == 0
    assert type(checked(1, NonNegative, "v")) is int  # an address tells 1 from 1.0
    with pytest.raises(InputError, match=r"^v must be at least 0, got -1$"):
        checked(-1, NonNegative, "v")


def test_an_array_must_be_one_of_its_type() -> None:
    hint = npt.NDArray[np.float64]
    held = np.array([1.0])
    assert checked(held, hint, "x") is held
    assert checked(None, hint | None, "x") is None
    for wrong in ([1.0], np.array([1]), np.array(["a"])):
        with pytest.raises(InputError, match="x must be of type ndarray, got"):
            checked(wrong, hint, "x")


def test_what_no_float_holds_is_refused_whatever_its_digits() -> None:
    for most in (10**399, 10**5000):
        with pytest.raises(InputError, match=r"^v must be at most 1\.8e\+308 in size, got "):
            checked(most, float, "v")
    assert checked(10**399, int, "v") == 10**399


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    inner: Inner
    parts: tuple[Inner, ...]
    numbers: npt.NDArray[np.float64]
    places: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]
    worth: Mapping[str, Mapping[str, Positive]]
    pair: tuple[int, float]
    far: float = math.inf
    absent: float = math.nan
    bound: float | None = None


KEPT = Kept(
    inner=Inner(draws=None),
    parts=(Inner(), Inner(draws=3)),
    numbers=np.array([[1.5, np.nan], [np.inf, -0.0]]),
    places=np.array([2**62, -1]),
    known=np.array([True, False]),
    worth={"": {"bias": 1.5}},
    pair=(3, 0.25),
)


def test_what_is_made_plain_is_restored_through_json() -> None:
    told = read_json(json.dumps(plain(KEPT, json_number), allow_nan=False))
    made = restored(told, Kept, "kept")
    for name in ("numbers", "places", "known"):
        np.testing.assert_array_equal(getattr(made, name), getattr(KEPT, name))
        assert getattr(made, name).dtype == getattr(KEPT, name).dtype
    for name in ("inner", "parts", "worth", "pair", "far", "bound"):
        assert getattr(made, name) == getattr(KEPT, name)
    assert math.isnan(made.absent)
    del told["far"]
    assert restored(told, Kept, "kept").far == math.inf  # a class may gain fields


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("inner", {"draws": 0}, r"kept\.inner\.draws must be a whole number"),
        ("inner", {"import": "os"}, "key of kept.inner must be one of draws, move"),
        ("inner", [], r"kept\.inner must be of type Inner"),
        ("parts", [{}, 3], r"kept\.parts/1|kept\.parts must"),
        ("numbers", [[1.0], [1.0, 2.0]], "in lists of equal length"),
        ("numbers", ["x"], "must contain numbers"),
        ("places", [1.5], "must contain only int64, got float64"),
        ("known", [1], "must contain only bool, got int64"),
        ("worth", {"": {"bias": -1.0}}, r"kept\.worth\.\.bias must be above 0"),
        ("pair", [1], "a list of 2"),
        ("far", "x", "must be a number"),
    ],
)
def test_what_does_not_fit_is_not_restored(field: str, value: Any, said: str) -> None:
    told = {**plain(KEPT, json_number), field: value}
    with pytest.raises(InputError, match=said):
        restored(told, Kept, "kept")
    del told[field]
    if field != "far":
        with pytest.raises(InputError, match=r"kept must be whole: .*missing"):
            restored(told, Kept, "kept")


@pytest.mark.parametrize("text", ["", "NaN", "1e999", "9" * 30, "[" * 100_000, "{'a': 1}"])
def test_json_of_others_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="it is not JSON of numbers and text"):
        read_json(text)
