"""A study: its trials, how one is run, how they are put together, and the page of them.

Studies are known by name: those of howsure in `howsure_studies.engine.studies`, those of another
package by an entry point in the group ``howsure.studies``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, final

import pyarrow as pa

from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure_studies.engine.plan import Plan, studies
from howsure_studies.engine.store import FORMAT, Store, TrialOutput, address_of
from howsure_studies.engine.tables import stacked

if TYPE_CHECKING:
    from howsure.report.document import Document


@final
@frozen(kw_only=True)
class Trial:
    """One piece of work of a plan.

    Attributes
    ----------
    study : str
        Name of the study.
    identity : mapping
        Everything that decides the outcome, as plain values; see `Study.trial`.
    labels : mapping of str to str
        What the plan calls its parts (``world``, ``method``, or what else the trial is of). They
        decide nothing.
    context : mapping
        What is needed to run it and decides nothing beyond the identity: paths of data whose
        content's hash the identity has, the plan's own words.
    needs : tuple of str
        Addresses of the trials of the same plan whose results this one reads from the store. It
        runs when they have ended, and fails if one of them did.

    Examples
    --------
    >>> labels = {"world": "cells", "network": "gaussian 3"}
    >>> Trial(study="mine", identity={"seed": 3}, labels=labels).title
    'network gaussian 3 on cells'
    """

    study: str
    identity: Mapping[str, Any]
    labels: Mapping[str, str]
    context: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What it is, in words: its method and other labels, then its world."""
        labels = {key: text for key, text in self.labels.items() if key != "world"}
        what = ", ".join(t if key == "method" else f"{key} {t}" for key, t in labels.items())
        world = self.labels.get("world", "")
        return " on ".join(words for words in (what, world) if words)

    @property
    def address(self) -> str:
        """The hash of the identity, under which results are kept."""
        return address_of(self.identity)


@final
@frozen(kw_only=True, eq=False)
class Combined:
    """Trials of a plan put together.

    Attributes
    ----------
    table : pyarrow.Table
        One row a number: columns ``world``, ``method``, ``seed``, then those of
        `howsure_studies.engine.records_table`.
    results : mapping of str to sequence
        By world label: what the study's page is drawn from.
    facts : mapping of str to str
        Which worlds were drawn and which were read from originals, where trials tell; and where
        results come from that were not run here.
    missing : int
        Trials that are not done and whose results do not ship; of what ships alone, results.
    """

    table: pa.Table
    results: Mapping[str, Sequence[Any]]
    facts: Mapping[str, str] = field(default_factory=dict)
    missing: int = 0

    @classmethod
    def of(cls, parts: Sequence[Combined], facts: Mapping[str, str], missing: int = 0) -> Combined:
        """Several as one, whose worlds may be the same."""
        worlds = dict.fromkeys(world for part in parts for world in part.results)
        return cls(
            table=stacked([part.table for part in parts]),
            results={
                world: [result for part in parts for result in part.results.get(world, ())]
                for world in worlds
            },
            facts=facts,
            missing=missing,
        )


Group = tuple[str, str, int]
"""World, method and seed, as the plan calls them."""


def grouped(trials: Iterable[Trial]) -> dict[Group, list[Trial]]:
    """Trials whose results make one result of a method: those labelled by one."""
    groups: dict[Group, list[Trial]] = {}
    for trial in trials:
        if {"world", "method"} <= set(trial.labels):
            key = (trial.labels["world"], trial.labels["method"], trial.identity.get("seed", 0))
            groups.setdefault(key, []).append(trial)
    return groups


def needed_by(trials: Iterable[Trial], every: Mapping[str, Trial]) -> Iterator[str]:
    """Addresses of trials, and of all that they need, of every trial of a plan by address."""
    waiting, seen = [trial.address for trial in trials], set[str]()
    while waiting:
        address = waiting.pop()
        if address not in seen:
            seen.add(address)
            yield address
            waiting += every[address].needs


class Study(ABC):
    """An experiment. Subclasses are final and need no arguments.

    Plans in the folder ``plans`` beside the module are known by their names.

    Attributes
    ----------
    name : str
        Its name.
    version : int
        Raised when a trial of the same identity would give something else.
    headline : tuple of str
        The measures that are shown unless others are asked for.
    kinds : tuple of type
        Dataclasses that `read` gives, where results ship; fields as `howsure.core.convert.packed`
        knows them.
    report : str
        What makes the page of results by world, as ``module:function``; it loads when it is asked
        for, as it brings reports and figures.
    """

    __slots__ = ()
    name: ClassVar[str]
    version: ClassVar[int]
    headline: ClassVar[tuple[str, ...]]
    kinds: ClassVar[tuple[type, ...]] = ()
    report: ClassVar[str] = ""

    @abstractmethod
    def trials(self, plan: Plan) -> tuple[Trial, ...]:
        """All trials of a plan, in the order in which they are run, as far as needs allow.

        Raises
        ------
        InputError
            If a name or an option is not known, or breaks its rule.
        """

    @abstractmethod
    def run(self, trial: Trial, store: Store | None = None) -> TrialOutput:
        """Run one trial, in whatever process; what it raises is kept as the trial's failure.

        How far it is, it says by `howsure.core.progress.report_progress`.

        Parameters
        ----------
        trial : Trial
            One of `trials`.
        store : Store, optional
            Where to read what the trial needs; every run gives it.

        Returns
        -------
        TrialOutput
        """

    @abstractmethod
    def read(self, plan: Plan, trials: Sequence[Trial], store: Store) -> Sequence[Any]:
        """What trials of one method on one world under one seed gave, of those that are done.

        Parameters
        ----------
        plan : Plan
            Of the trials.
        trials : sequence of Trial
            Done and whole in the store.
        store : Store
            Where they are.

        Returns
        -------
        sequence
            Dataclasses of `kinds` where results are to ship with a plan.
        """

    @abstractmethod
    def combine(self, plan: Plan, results: Mapping[Group, Sequence[Any]]) -> Combined:
        """Put together what `read` gave of each world, method and seed, named as the plan does."""

    def shortened(self, result: Any) -> Any:
        """As much of a result of `read` as ships with a plan: all that the page reads."""
        return result

    def shipping(self, results: Mapping[Group, Sequence[Any]]) -> Mapping[Group, Sequence[Any]]:
        """What ships of all results of a plan: each `shortened`, as none needs the others.

        Where one does, a study says here what ships, and its files are not made in parts.
        """
        return {group: [self.shortened(result) for result in own] for group, own in results.items()}

    def page(
        self, combined: Combined, *, facts: Mapping[str, str] | None = None, command: str = ""
    ) -> Document:
        """The page of what `combine` gave: of `report`, else methods side by side on every world.

        Where worlds are 5 or more, it ends with methods over all of them by the leading measure.

        Parameters
        ----------
        combined : Combined
            What was found.
        facts : mapping of str to str, optional
            What else is known.
        command : str
            What makes the page again.
        """
        from howsure_studies.engine.page import side_by_side_page, with_standings

        if self.report:
            module, _, name = self.report.partition(":")
            made: Document = getattr(import_module(module), name)(
                combined.results, facts=facts, command=command
            )
        else:
            made = side_by_side_page(self, combined.table, facts=facts or {}, command=command)
        return with_standings(made, self, combined.table)

    def trial(
        self,
        identity: Mapping[str, Any],
        labels: Mapping[str, str],
        context: Mapping[str, Any] | None = None,
        needs: Sequence[str] = (),
    ) -> Trial:
        """A trial whose identity also holds the study's name and version and the store's form.

        The addresses that it needs are part of the identity too, so that it changes its address
        where one of them does.
        """
        frame = {"format": FORMAT, "protocol": self.name, "version": self.version}
        read = {"needs": list(needs)} if needs else {}
        return Trial(
            study=self.name,
            identity={**frame, **read, **identity},
            labels=labels,
            context=context or {},
            needs=tuple(needs),
        )


def study_of(name: str) -> Study:
    """The study of a name.

    Raises
    ------
    InputError
        If there is no such study; the message names the near ones.

    Examples
    --------
    >>> study_of("pointwise").name
    'pointwise'
    """
    study = studies.get(name)()
    if not isinstance(study, Study):
        raise InputError(f"study {name!r} must be a Study, got {type(study).__name__}")
    return study


def gathered(plan: Plan, trials: Iterable[Trial], store: Store) -> Combined:
    """What these trials of a plan gave, put together; those that failed may say so.

    Parameters
    ----------
    plan : Plan
        Of the trials.
    trials : iterable of Trial
        Whole in the store.
    store : Store
        Where they are.
    """
    study = study_of(plan.study)
    read = {key: study.read(plan, own, store) for key, own in grouped(trials).items()}
    return study.combine(plan, {key: results for key, results in read.items() if results})


def sources_of(trials: Iterable[Trial]) -> str:
    """In a line, which worlds are drawn and which are read from originals, as trials tell.

    A trial tells it by ``source`` in its context: ``drawn``, ``original``, or nothing where its
    world is a table of one's own.

    Examples
    --------
    >>> drawn = Trial(study="s", identity={}, labels={"world": "a"}, context={"source": "drawn"})
    >>> read = Trial(study="s", identity={}, labels={"world": "b"}, context={"source": "original"})
    >>> sources_of([drawn, read, read])
    'drawn: a; read from originals: b'
    """
    source_of = {trial.labels.get("world", ""): trial.context.get("source") for trial in trials}
    parts = []
    for source, words in (("drawn", "drawn"), ("original", "read from originals")):
        worlds = [world for world, own in source_of.items() if own == source]
        parts += [f"{words}: {', '.join(worlds)}"] if worlds else []
    return "; ".join(parts)


def trials_of(plan: Plan) -> tuple[Trial, ...]:
    """All trials of a plan; two labels of one thing give trials of one address.

    Examples
    --------
    >>> from howsure_studies.engine import load_plan
    >>> len(trials_of(load_plan("smoke", ["simulations=4", "block=2"])))
    8
    """
    return study_of(plan.study).trials(plan)
