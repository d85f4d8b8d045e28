"""Tests of coverage in pytest: the body of a marked test runs again with new draws until it tells.

Every session of pytest loads this module. What weighs anything is imported once a test is marked.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, final

import pytest

if TYPE_CHECKING:
    import numpy as np

    from howsure.report.replicates import (
        CoverageOutcome,
        CoverageRule,
        CoverageSession,
        CoverageTrial,
    )

_MARKER: Final = (
    "coverage(coverage, tolerance=0.02, replicates=200, sided='two'): repeat the body with new "
    "draws of howsure.rng until howsure.covers(...) shows whether the mean coverage is within the "
    "tolerance; sided='low' tests only the lower limit."
)
_FIXTURE: Final = "howsure"
_PROPERTY: Final = "howsure_coverage"
_RULE: Final = pytest.StashKey["tuple[CoverageRule, str]"]()
_TESTS: Final = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a session may choose."""
    group = parser.getgroup("howsure", "tests of coverage (howsure)")
    group.addoption(
        "--coverage-error",
        type=float,
        default=0.01,
        metavar="SHARE",
        help="maximum probability of any failure in a session of correct methods (0.01)",
    )
    group.addoption(
        "--coverage-seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of all replicates (0)",
    )
    group.addoption(
        "--coverage-report",
        action="append",
        default=[],
        metavar="FILE",
        help="write the results of coverage tests to FILE.json or FILE.md; may be repeated",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and refuse wrong options."""
    config.addinivalue_line("markers", _MARKER)
    error, seed = config.getoption("coverage_error"), config.getoption("coverage_seed")
    if not 0.0 < error < 1.0:
        raise pytest.UsageError(f"--coverage-error must be strictly between 0 and 1, got {error}")
    if seed < 0:
        raise pytest.UsageError(f"--coverage-seed must be at least 0, got {seed}")
    if hasattr(config, "workerinput"):  # whoever started the workers of xdist gathers
        return
    files = [config.invocation_params.dir / name for name in config.getoption("coverage_report")]
    for file in files:
        if file.suffix not in (".json", ".md"):
            raise pytest.UsageError(
                f"--coverage-report must be a file that ends in .json or .md, got {file}"
            )
    if files:
        from howsure.core.errors import InputError
        from howsure.core.files import check_outputs

        try:
            check_outputs(files)
        except InputError as refused:
            raise pytest.UsageError(f"--coverage-report: {refused}") from refused
    config.pluginmanager.register(CoverageReporter(error, files))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """Read the markers of a function's tests; a wrong one is an error of its module.

    Here, for an error once all is collected would break the workers of xdist.
    """
    items = yield
    for item in items if isinstance(items, list) else ():
        try:
            if isinstance(item, pytest.Function):
                _prepared(item)
        except pytest.UsageError as error:
            raise pytest.Collector.CollectError(str(error)) from None
    return items


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Count tests of coverage before some are deselected: `-k` and `-m` then change no outcome."""
    before = sum(map(_prepared, items))
    yield
    config.stash[_TESTS] = max(before, sum(map(_prepared, items)))


def _prepared(item: pytest.Item) -> bool:
    """Whether a test is one of coverage; its rule is read once."""
    if _RULE in item.stash:
        return True
    mark = item.get_closest_marker("coverage")
    if mark is None:
        return False
    if _FIXTURE not in getattr(item, "fixturenames", ()):
        if mark in item.own_markers and (mark.args or mark.kwargs):
            raise pytest.UsageError(
                f"{item.nodeid}: a test marked coverage needs the fixture {_FIXTURE}, got none"
            )
        return False  # the marker of a whole module, or somebody else's
    if inspect.iscoroutinefunction(getattr(item, "obj", None)):
        raise pytest.UsageError(f"{item.nodeid}: a test marked coverage must not be async")
    item.stash[_RULE] = (_rule(item, mark), _name(item))
    return True


def _name(item: pytest.Item) -> str:
    """The node id, without its folder where no file of settings fixes what that is relative to."""
    file, *parts = item.nodeid.split("::", 1)
    return item.nodeid if item.config.inipath else "::".join([file.rpartition("/")[2], *parts])


def _rule(item: pytest.Item, mark: pytest.Mark) -> CoverageRule:
    from howsure.core.convert import from_options
    from howsure.core.errors import InputError
    from howsure.report.replicates import CoverageRule

    options = {**dict(zip(["coverage"], mark.args, strict=False)), **mark.kwargs}
    try:
        if len(mark.args) + ("coverage" in mark.kwargs) != 1:
            raise InputError(
                "coverage must be given once, as in @pytest.mark.coverage(0.9), and other "
                f"arguments by name, got {mark.args} and {mark.kwargs}"
            )
        return from_options(CoverageRule, options, "argument of the marker")
    except InputError as error:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.coverage: {error}") from error


@final
class Replicated:
    """What the fixture `howsure` is in a test: the package, and one replicate after the other.

    Parameters
    ----------
    trial : CoverageTrial
        To which replicates are added.
    """

    def __init__(self, trial: CoverageTrial) -> None:
        self._trial = trial
        self._hits: list[np.typing.NDArray[np.bool_]] = []
        self._rng: np.random.Generator | None = None

    def __getattr__(self, name: str) -> Any:
        """Names of the package, which the fixture hides."""
        return getattr(importlib.import_module("howsure"), name)

    @property
    def coverage(self) -> float:
        """The nominal coverage of the marker."""
        return self._trial.rule.coverage

    @property
    def replicate(self) -> int:
        """The number of this replicate, from 1."""
        return len(self._trial.values) + 1

    @property
    def rng(self) -> np.random.Generator:
        """The generator of this replicate, fixed by the test's node id and the replicate."""
        if self._rng is None:
            pytest.fail(
                "howsure.rng must be used in the body of the test, not in a fixture: only the body "
                "is repeated",
                pytrace=False,
            )
        return self._rng

    def covers(self, y: Any, prediction: Any = None, upper: Any = None) -> None:
        """Record what this replicate covers; rows of several calls are combined.

        Parameters
        ----------
        y : array-like of shape (n,)
            What happened; or, alone, whether each row is covered, as bool.
        prediction : optional
            What was predicted, in any form that `howsure.assess` takes; or the lower ends of
            intervals, where `upper` is given.
        upper : array-like of shape (n,), optional
            Upper ends of intervals.

        Raises
        ------
        InputError
            If these are no such rows, or there are none.
        """
        from howsure.report.replicates import covered_rows

        self._hits.append(covered_rows(y, prediction, upper, coverage=self.coverage))

    def repeat(self, body: Callable[..., Any], **arguments: Any) -> Any:
        """Run a body until the replicates tell, or are used up."""
        from howsure.report.replicates import replicate_rng

        trial, result = self._trial, None
        while self.replicate <= trial.rule.replicates and trial.state == "undecided":
            self._hits.clear()
            self._rng = replicate_rng(trial.test, self.replicate, trial.seed)
            result = body(**arguments)
            if not self._hits:
                pytest.fail(
                    "a test marked coverage must call howsure.covers in every replicate, got no "
                    f"call in replicate {self.replicate}",
                    pytrace=False,
                )
            trial.add(*self._hits)
        return result

    def outcome(self) -> CoverageOutcome:
        """What the replicates tell."""
        return self._trial.outcome()

    def broken(self, error: BaseException) -> CoverageOutcome:
        """That an error broke the test, which learns in which replicate."""
        from howsure.core.errors import error_line
        from howsure.report.replicates import drawn_with

        trial = self._trial
        drawn = drawn_with(trial.test, self.replicate, trial.seed)
        error.add_note(f"This is replicate {self.replicate}, drawn with {drawn}.")
        return trial.outcome(error_line(error))


@pytest.fixture(name=_FIXTURE)
def howsure_fixture(request: pytest.FixtureRequest) -> Replicated:
    """For a test marked coverage: `howsure.rng` draws, `howsure.covers(y, prediction)` records.

    `howsure.covers` takes flags (whether each row is covered), y and a prediction as
    `howsure.assess` takes it, or y, lower and upper ends. `howsure.coverage` is the nominal one.
    """
    stashed = request.node.stash.get(_RULE, None)
    if stashed is None:
        pytest.fail(
            f"the fixture {_FIXTURE} needs a test marked @pytest.mark.coverage(0.9), got a test "
            "without that marker",
            pytrace=False,
        )
    from howsure.report.replicates import CoverageTrial

    rule, name = stashed
    config = request.config
    share = config.getoption("coverage_error") / config.stash[_TESTS]
    seed = config.getoption("coverage_seed")
    return Replicated(CoverageTrial(rule, error_rate=share, test=name, seed=seed))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Repeat the body of a marked test, whoever calls it; then judge it."""
    if _RULE not in pyfuncitem.stash:
        return (yield)
    body, replicated = pyfuncitem.obj, cast(Replicated, pyfuncitem.funcargs[_FIXTURE])
    pyfuncitem.obj = functools.partial(replicated.repeat, body)
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        _attach_outcome(pyfuncitem, replicated.broken(error))
        raise
    finally:
        pyfuncitem.obj = body
    outcome = replicated.outcome()
    _attach_outcome(pyfuncitem, outcome)
    if outcome.state == "fails":
        pytest.fail(outcome.sentence, pytrace=False)
    return result


def _attach_outcome(item: pytest.Item, outcome: CoverageOutcome) -> None:
    """Send what was found along with the test's report, whichever process makes it."""
    item.user_properties[:] = [entry for entry in item.user_properties if entry[0] != _PROPERTY]
    item.user_properties.append((_PROPERTY, asdict(outcome)))


@final
class CoverageReporter:
    """Gathers what became of tests of coverage, from workers too, and tells it at the end."""

    def __init__(self, error_rate: float, files: Sequence[Path]) -> None:
        self.error_rate, self.files = error_rate, files
        self.found: dict[tuple[str, str], dict[str, Any]] = {}

    def _session(self) -> CoverageSession:
        from howsure.report.replicates import CoverageOutcome, CoverageSession

        outcomes = tuple(CoverageOutcome(**self.found[key]) for key in sorted(self.found))
        return CoverageSession(outcomes=outcomes, error_rate=self.error_rate)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One test; of one that runs again, the last."""
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _PROPERTY and isinstance(value, dict):
                self.found[value["test"], report.nodeid] = value

    def pytest_sessionfinish(self) -> None:
        """Write the reports."""
        for file in self.files:
            from howsure.core.files import atomic_write

            report = self._session()
            atomic_write(file, report.to_json() if file.suffix == ".json" else report.to_markdown())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A line, and one for each test that is undecided."""
        if not self.found:
            return
        session = self._session()
        terminalreporter.section("coverage (howsure)")
        terminalreporter.line(session.summary)
        for outcome in session.outcomes:
            if outcome.state == "undecided":
                terminalreporter.line(f"? {outcome.test}: {outcome.sentence}")
        for file in self.files:
            terminalreporter.line(f"Report: {file}")
