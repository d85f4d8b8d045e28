"""Measures by whatever the field calls them."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.engine.catalogue import asked_for, catalogue, metric_named
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet, Intervals


def plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def test_no_spelling_is_of_two_measures() -> None:
    owners: dict[str, set[str]] = {}
    for name, metric in catalogue().items():
        for spelling in metric.spellings:
            owners.setdefault(plain(spelling), set()).add(name)
    assert not {spelling: names for spelling, names in owners.items() if len(names) > 1}


def test_no_synonym_says_again_what_is_said() -> None:
    for name, metric in catalogue().items():
        said = [plain(spelling) for spelling in metric.synonyms]
        rest = {plain(s) for s in metric.spellings[: -len(said) or None]} if said else set()
        assert len(set(said)) == len(said), name
        assert not set(said) & rest, name
        assert all(said), name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("PICP", "empirical_coverage"),
        ("coverage", "empirical_coverage"),
        ("MPIW", "mean_width"),
        ("Mean-Width", "mean_width"),
        ("mean width", "mean_width"),
        ("sharpness", "sharpness"),
        ("CRPS", "crps"),
        ("WIS", "weighted_interval_score"),
        ("pinball loss", "pinball"),
        ("quantile_loss", "pinball"),
        ("ECE", "calibration_error"),
        ("RMSE", "rmse"),
        ("Winkler score", "interval_score"),
        ("ENCE", "ence"),
        ("AUUCC", "auucc"),
        ("NLL", "log_score"),
        ("LOG SCORE", "log_score"),
        ("E-AURC", "excess_aurc"),
        ("R²", "r_squared"),
        ("R2", "r_squared"),
        ("SSCV", "sscv"),
        ("WSC", "worst_slab"),
        ("ZMS", "mean_squared_z"),
        ("NMPIW", "normalised_width"),
        ("PINAW", "normalised_width"),
    ],
)
def test_synonyms_are_found(spelling: str, name: str) -> None:
    assert metric_named(spelling).name == name


def test_every_spelling_leads_to_its_measure() -> None:
    for name, metric in catalogue().items():
        for spelling in metric.spellings:
            for written in (spelling, spelling.upper(), spelling.replace(" ", "-")):
                assert metric_named(written).name == name


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("pipc", "did you mean .*empirical_coverage"),
        ("interval_scor", "did you mean .*interval_score"),
        ("wincler", "did you mean .*interval_score"),
        ("zzzzzz", r"got 'zzzzzz'$"),
        ("", r"got ''$"),
    ],
)
def test_what_is_near_is_told(wrong: str, near: str) -> None:
    with pytest.raises(InputError, match=near):
        metric_named(wrong)
    with pytest.raises(InputError, match="--also must be a measure that howsure metrics lists"):
        asked_for([wrong], "--also")


def test_evaluate_takes_them() -> None:
    held = EvalSet.checked(np.arange(4.0), Intervals(np.zeros(4), np.full(4, 2.0), 0.9))
    found = evaluate(held, metrics=["PICP", "MPIW", "picp"])
    assert [record.metric for record in found.records] == ["empirical_coverage", "mean_width"]
    with pytest.raises(InputError, match="did you mean empirical_coverage"):
        evaluate(held, metrics=["pipc"])
