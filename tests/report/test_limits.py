"""Files of limits: what is written is what is judged, and what is wrong is named with its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from howsure.core.errors import InputError
from howsure.engine.catalogue import catalogue
from howsure.report.check import Limit, Rules, limit_of, project_rules, read_rules, with_more

WHOLE = """
confidence = 0.9
sided = "two"
undecided = "fail"
fail_on = "caution"
findings = ["coverage", "drift"]
ignore = ["width"]
tolerance = 0.02
by = ["region"]
limits = [
    {measure = "coverage", min = 0.88, max = 0.95},
    {measure = "crps", max = 2, at = 0.9, model = "forest", by = []},
]
"""


def written(folder: Path, text: str, name: str = "limits.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_the_name_of_version_0_2_is_read(tmp_path: Path) -> None:
    old, new = (
        read_rules(written(tmp_path, f'fail_on = "{name}"', f"{name}.toml"))
        for name in ("watch", "caution")
    )
    assert old == new
    assert new.fail_on == "caution"


def test_every_key_is_read(tmp_path: Path) -> None:
    rules = read_rules(written(tmp_path, WHOLE))
    assert rules == Rules(
        limits=(
            Limit("empirical_coverage", "min", 0.88),
            Limit("empirical_coverage", "max", 0.95),
            Limit("crps", "max", 2.0, at=0.9, model="forest", by=()),
        ),
        by=("region",),
        confidence=0.9,
        sided="two",
        undecided="fail",
        fail_on="caution",
        findings=("coverage", "drift"),
        ignore=("width",),
        tolerance=0.02,
    )
    assert rules.columns == ("region",)
    repeated = written(tmp_path, '[[limits]]\nmeasure = "mae"\nmax = 2\n', "repeated.toml")
    assert read_rules(repeated).limits == (Limit("mae", "max", 2.0),)


def test_a_project_holds_limits(tmp_path: Path) -> None:
    assert project_rules(tmp_path) is None
    path = written(tmp_path, '[project]\nname = "x"\n', "pyproject.toml")
    assert project_rules(tmp_path) is None
    with pytest.raises(InputError, match=r"must contain the table \[tool.howsure.check\]"):
        read_rules(path)
    table = '[tool.howsure.check]\nlimits = [{measure = "mae", max = 2}]\n'
    written(tmp_path, table, "pyproject.toml")
    assert project_rules(tmp_path) == read_rules(path) == Rules(limits=(Limit("mae", "max", 2.0),))
    for text, said in (
        (
            "[tool.howsure.chekc]\n",
            "table of .tool.howsure. must be one of check, got 'chekc'; near",
        ),
        ("[tool.howsure]\ncheck = 3\n", r"\[tool.howsure.check\] must be a table"),
        ("[tool.howsure.check]\n", r"\[tool.howsure.check\]: nothing to judge"),
        (
            "[tool.howsure.check]\nby = 3\n",
            r"pyproject.toml \[tool.howsure.check\]: by must be a list",
        ),
        ("[tool\n", "limits pyproject.toml must be valid TOML"),
    ):
        written(tmp_path, text, "pyproject.toml")
        with pytest.raises(InputError, match=said):
            project_rules(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'nothing to judge: give limits, or fail_on = "bad"'),
        ("limits = []", "nothing to judge"),
        ("limits = [", "must be valid TOML"),
        ("confidense = 0.9", "key must be one of .*, got 'confidense'; near: confidence"),
        ("confidence = 95", r"confidence must be in \(0.5, 1\), got 95"),
        ('confidence = "high"', r"confidence must be in .* got 'high'"),
        ('undecided = "maybe"', "undecided must be one of pass, fail, got 'maybe'"),
        ('fail_on = "worse"', "fail_on must be one of never, caution, bad, got 'worse'"),
        ('by = "region"', "by must be a list of names, got 'region'"),
        ('limits = "coverage"', "limits must be a list of tables"),
        ("limits = {coverage = 0.9}", "limits must be a list of tables"),
        ("limits = [3]", "limit 1: it must be .* got 3"),
        ("limits = [{min = 0.9}]", "limit 1: a limit needs a measure"),
        ('limits = [{measure = "mae"}]', "limit 1: mae must have min or max, got neither"),
        ('limits = [{measure = "mae", most = 3}]', "limit 1: key must be one of .* got 'most'"),
        ('limits = [{measure = "mae", max = "3"}]', "limit 1: max must .* got '3'"),
        ('limits = [{measure = "mae", max = true}]', "limit 1: max must .* got True"),
        (
            'limits = [{measure = "mae", max = nan}]',
            "limit 1: limit on mae must be a number, got nan",
        ),
        ('limits = [{measure = "mae", max = -1}]', r"limit on mae must be in \[0, inf\), got -1$"),
        ('limits = [{measure = "maee", max = 1}]', "got 'maee'; did you mean mae"),
        (
            'limits = [{measure = "coverage", min = 0.9}, {measure = "coverage", min = 90}]',
            r"limit 2: limit on coverage must be in \[0, 1\], got 90: did you mean 0.9\?",
        ),
        (
            'limits = [{measure = "coverage", min = 0.9, max = 0.8}]',
            "min of empirical_coverage must not exceed its max, got min 0.9 and max 0.8",
        ),
        ('limits = [{measure = "mae", max = 1, at = 90}]', "limit 1: at must be strictly between"),
        ('limits = [{measure = "mae", max = 1, by = "a"}]', "limit 1: by must be a list of names"),
        ('fail_on = "bad"\nfindings = ["drif"]', "findings must be one of .*; near: drift"),
        ('fail_on = "bad"\nignore = ["drif"]', "ignore must be among .*, got 'drif'"),
        (
            'findings = ["drift"]\nlimits = [{measure = "mae", max = 1}]',
            "set fail_on to bad or caution",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_file(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=said) as caught:
        read_rules(path)
    assert "limits.toml" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes('by = ["Köln"]'.encode("latin-1"))
    with pytest.raises(InputError, match=r"latin\.toml must be UTF-8 text"):
        read_rules(path)
    with pytest.raises(InputError, match=r"gone\.toml cannot be read: No such file"):
        read_rules(tmp_path / "gone.toml")
    with pytest.raises(InputError, match="cannot be read"):
        read_rules(tmp_path)
    with pytest.raises(InputError, match="limits"):
        read_rules(f"a{os.sep}b\0.toml")


def test_shares_in_percent_are_asked_about_and_other_units_are_not() -> None:
    """Of everything that lies between 0 and 1, and of nothing else."""
    for name, entry in catalogue().items():
        if not entry.forms:
            continue
        if entry.bounds == (0.0, 1.0):
            with pytest.raises(InputError, match=r"got 5: did you mean 0.05\?"):
                limit_of(name, "max", 5)
            assert limit_of(name, "max", 1).value == 1
        elif entry.bounds[1] >= 5:
            assert limit_of(name, "max", 5).value == 5
    with pytest.raises(InputError, match=r"did you mean 0\.8\?"):
        limit_of("worst_group", "min", 80)
    with pytest.raises(InputError, match=r"got 900$"):
        limit_of("coverage", "min", 900)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("worst_group_shortfall", "must use worst_group, got 'worst_group_shortfall'"),
        ("groups_differ", "measure with confidence bounds"),
        ("covrage", "did you mean empirical_coverage"),
        ("xyzzy", r"got 'xyzzy'$"),
    ],
)
def test_names_that_have_no_limit(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        limit_of(name, "min", 0.5)
    with pytest.raises(InputError, match="worst_group needs min"):
        limit_of("worst_group", "max", 0.5)


def test_flags_add_limits_once_and_replace_choices() -> None:
    base: Any = Rules(limits=(limit_of("mae", "max", 2.0),), confidence=0.9)
    more = with_more(base, base.limits, confidence=None, sided="two")
    assert more == Rules(limits=base.limits, confidence=0.9, sided="two")
    with pytest.raises(InputError, match="min of mae must not exceed its max"):
        with_more(base, (limit_of("mae", "min", 3.0),))
