"""How long tests take, held to the budget of the lane that runs them.

With ``--pace LANE`` processor times are taken, those of fixtures and children included. The dearest
tests are listed, and a lane that exceeds its budget in ``budgets.toml`` by a tenth fails. Budgets
are in units: pieces of NumPy and SciPy work that is always the same and is timed again and again
between the tests, so that a slow machine or a busy one changes both alike.
"""

from __future__ import annotations

import functools
import resource
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy import special

NOMINAL = 0.1
"""Seconds that a unit of work takes on a quiet core."""
BUDGETS = Path(__file__).with_name("budgets.toml")
ALLOWED_EXCESS = 1.1  # repeated runs of one lane differ by some hundredths
SECONDS_BETWEEN_UNITS = 15.0  # of tests' processor time, so that units take under a hundredth of it
SHOWN = 12  # dearest tests that are listed


def spent() -> float:
    """Processor time of this process and of its children that have ended."""
    every = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in every)


def time_unit() -> float:
    """Processor seconds that one unit of work takes now."""
    begun = time.process_time()
    values = np.random.default_rng(0).normal(size=300_000)
    for _ in range(3):
        np.sort(special.ndtr(values))
    for row in values.reshape(-1, 100):  # tests are mostly many calls on few numbers
        special.ndtri(special.ndtr(row)).mean()
        np.cumsum(np.argsort(row))
    return time.process_time() - begun


def slowness() -> float:
    """By what factor this machine, as busy as it is, is slower than a quiet core."""
    return max(float(np.mean([time_unit() for _ in range(3)])) / NOMINAL, 1.0)


@functools.cache
def budgets() -> dict[str, float]:
    """Units that each lane may take: those it took when first measured, and what was added."""
    content = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    units = {lane: float(value) for lane, value in content["units"].items()}
    for entry in content.get("raised", ()):
        if not (entry["for"].strip() and entry["faster"].strip()):
            raise ValueError("an entry says what for, and what was made faster instead")
        units[entry["lane"]] += entry["by"]
    return units


class Pace:
    """Times every test; lists the dearest; holds the lane to its budget."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.seconds: dict[str, float] = {}
        self.units: list[float] = []
        self._until_unit = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        if self._until_unit <= 0.0:
            item.user_properties.append(("unit", time_unit()))
            self._until_unit = SECONDS_BETWEEN_UNITS
        return (yield from self._timed(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from self._timed(item))

    def _timed(self, item: pytest.Item) -> Iterator[None]:
        begun = spent()
        try:
            return (yield)
        finally:
            took = spent() - begun
            item.user_properties.append(("processor_time", took))
            self._until_unit -= took

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":  # whose report alone has what set-up and call have added
            return
        for name, value in report.user_properties:
            if name == "processor_time":
                self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + float(value)
            elif name == "unit":
                self.units.append(float(value))

    @functools.cached_property
    def verdict(self) -> tuple[bool, str]:
        """Whether the lane keeps its budget, and a line that says so."""
        total, unit = sum(self.seconds.values()), float(np.mean(self.units or [NOMINAL]))
        line = f"{total:.0f} s of processor time are {total / unit:,.0f} units of {unit:.3f} s"
        budget = budgets().get(self.lane)
        if budget is None:
            return True, line
        exceeded = total / unit > ALLOWED_EXCESS * budget
        return not exceeded, f"{line}; {self.lane} may take {budget:,.0f}"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput") and not self.verdict[0]:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time")
        dearest = sorted(self.seconds.items(), key=lambda each: -each[1])
        for name, took in dearest[:SHOWN]:
            terminalreporter.line(f"{took:7.2f} s  {name}")
        within, line = self.verdict
        terminalreporter.line(line if within else f"ERROR budget exceeded: {line}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pace", metavar="LANE", help="take times and hold them to a lane's budget")


def pytest_configure(config: pytest.Config) -> None:
    lane = config.getoption("--pace")
    if lane is not None:
        config.pluginmanager.register(Pace(lane))
