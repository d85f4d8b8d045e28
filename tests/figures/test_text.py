"""Names from outside, cut to a sane length and still told apart."""

from __future__ import annotations

from howsure.core.text import abridged


def test_long_names_lose_their_middle() -> None:
    name = "boosted trees " * 5 + "monotone"
    assert abridged(["linear", name], 20) == {name: "boosted tr…s monotone"}


def test_names_that_would_look_the_same_stay_whole() -> None:
    alike = [f"{'a' * 30}{middle}{'b' * 30}" for middle in "xy"]
    assert abridged([*alike, "c" * 70], 40) == {"c" * 70: f"{'c' * 20}…{'c' * 20}"}
    assert abridged(["d" * 40], 40) == {}
