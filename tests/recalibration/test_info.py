"""Each way to recalibrate is described once, where it stands, and all that is named follows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules

import pytest

import howsure.recalibration
from howsure.cli.recalibrate import _compared
from howsure.core.errors import InputError
from howsure.predictions import Distribution, Intervals, Probabilities, Samples
from howsure.recalibration import (
    METHODS,
    FittedRecalibration,
    Recalibrator,
    load_recalibration,
    method,
    methods_of,
)
from howsure.recalibration.dispatch import InTurn, advised, method_names, method_of
from howsure.recalibration.group import ByGroup
from howsure.recalibration.info import KINDS, RecalibrationOptions
from howsure.report.conformal import CONFORMAL_METHODS
from howsure.report.recalibrate import check_method
from howsure.verdict.findings import questions
from recalibration.test_serialization import numbers, options, rows


def heirs(kind: type[Recalibrator]) -> Iterator[type[Recalibrator]]:
    for heir in kind.__subclasses__():
        yield heir
        yield from heirs(heir)


@pytest.mark.parametrize("name", METHODS)
def test_each_suits_some_kind_and_aims_at_findings(name: str) -> None:
    info = METHODS[name]
    assert info.name == name
    assert info.kinds
    assert set(info.kinds) <= set(KINDS)
    assert set(info.leads) <= set(info.kinds)
    assert info.aims <= set(questions())
    tried = bool(info.words) and info.kinds != (
        Probabilities.kind,
    )  # those have trials of their own
    assert tried == bool(info.complexity) == bool(info.aims)
    assert ("{by}" in info.words) == (bool(info.words) and info.needs == "groups")


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_reached_by_its_name(kind: str) -> None:
    for name, info in methods_of(kind).items():
        made = method(name, kind, coverage=0.8)
        wanted = info.make(kind, RecalibrationOptions(coverage=0.8))
        assert (type(made), repr(made)) == (type(wanted), repr(wanted))


@pytest.mark.parametrize("name", METHODS)
def test_without_a_kind_it_is_for_one_that_it_leads_or_serves(name: str) -> None:
    kind = (*METHODS[name].leads, *METHODS[name].kinds)[0]
    assert repr(method(name, coverage=0.9)) == repr(method(name, kind, coverage=0.9))


def test_options_reach_the_method() -> None:
    assert "levels=(0.1, 0.9)" in repr(method("shape", levels=(0.1, 0.9)))
    assert "too_few='error'" in repr(method("cqr", too_few="error"))
    by_site = method("group", by="site")
    assert isinstance(by_site, ByGroup)
    assert by_site.by == ("site",)


def test_what_is_unknown_is_refused_with_what_is_near() -> None:
    with pytest.raises(InputError, match=r"^name must be one of .* got 'shpe'; near: shape"):
        method("shpe")
    with pytest.raises(InputError, match=r"^option must be one of .* got 'lvels'; near: levels"):
        method("shape", lvels=[0.5])
    kinds = "distributions, quantiles, samples"
    with pytest.raises(InputError, match=f"^kind must be one of {kinds}, got 'intervals'$"):
        method("shape", "intervals")


def test_every_fitted_method_can_be_kept() -> None:
    """Each final class is among those that a method saves, but for that of methods in turn."""
    for module in iter_modules(howsure.recalibration.__path__):
        import_module(f"howsure.recalibration.{module.name}")
    named = {kind.__name__ for kind in heirs(Recalibrator) if not isabstract(kind)}
    own = {k.__name__ for k in heirs(Recalibrator) if k.__module__.startswith("howsure.")}
    saved = {kind.__name__ for info in METHODS.values() for kind in info.saves}
    assert saved | {InTurn.__name__} == named & own


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_of_a_kind_is_that_of_one_method(kind: str) -> None:
    known = methods_of(kind)
    aliases = [alias for info in known.values() for alias in info.aliases if alias not in known]
    assert len(set(aliases)) == len(aliases)
    for name, info in known.items():
        assert method_of(kind, name) is info
        assert all(method_of(kind, alias) is info for alias in set(info.aliases) & set(aliases))
    assert method_of(kind, "magic") is None
    assert method_of(kind, None) is None


@pytest.mark.parametrize("name", method_names())
def test_every_name_and_alias_is_taken_on_the_command_line(name: str) -> None:
    check_method(name, ())
    assert _compared(name) == [name]


def test_names_hold_all_that_is_known() -> None:
    assert {*METHODS, *CONFORMAL_METHODS} <= set(method_names())
    assert len(set(method_names())) == len(method_names())


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_advised_of_a_kind_rises_in_complexity(kind: str) -> None:
    found = [info.complexity for info in advised(kind)]
    assert found == sorted(found)


def test_what_is_advised_of_intervals_and_laws() -> None:
    intervals = ["shift", "scale", "cqr", "multiply", "asymmetric", "widths"]
    laws = ["shift", "scale", "shift_scale", "multiply", "widths", "shape", "isotonic_variance"]
    for kind, own in ((Intervals, intervals), (Distribution, laws), (Samples, laws)):
        told = [info.name for info in advised(kind.kind)]
        assert told == [*own, "group", "inputs"]


@pytest.mark.parametrize(
    ("kind", "name", "now", "then"),
    [
        ("point", "cp", "split", "cp"),
        ("intervals", "ucc", "scale", "ucc"),
        ("distributions", "cp", "cqr", "cp"),
        ("distributions", "cp_a", "scale", "cp_a"),
        ("distributions", "pac", "scale", "pac"),
        ("distributions", "ucc", "scale", "ucc"),
    ],
)
def test_what_was_kept_under_an_alias_is_read(
    tmp_path: Path, kind: str, name: str, now: str, then: str
) -> None:
    """One name is written; files of 0.2.0 hold the one that was asked for, also within."""
    info = method_of(kind, name)
    assert info is not None
    fitted = info.make(kind, options()).fit(rows(kind, 0))
    FittedRecalibration(recalibrators=(fitted,)).save(tmp_path / "now.json")
    text = (tmp_path / "now.json").read_text(encoding="utf-8")
    assert f'"method": "{now}"' in text
    older = text.replace(f'"method": "{now}"', f'"method": "{then}"')
    (tmp_path / "then.json").write_text(older, encoding="utf-8")
    mends = [load_recalibration(tmp_path / f"{age}.json") for age in ("now", "then")]
    here, there = (numbers(mend, kind) for mend in mends)
    assert here.keys() == there.keys()
    assert all((here[column] == there[column]).all() for column in here)
