"""How long tests take: one of over four seconds of processor time fails unless it is marked.

With `--pace N` times are taken, children's included, and the N dearest tests are listed.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import pytest

LIMIT = 4.0
"""Seconds of processor time past which a test that is not marked slow, or rate, fails.

It is due to be marked from half as many on; the same test takes twice as long beside others.
"""
BUDGET = 120.0
"""Seconds that all slow tests may take; dearer ones are marked rate, and run in `make rates`."""
NOMINAL = 0.03
"""Seconds that a million turns of a loop took where the limit was set."""
_MARKS = ("slow", "rate")


def spent() -> float:
    """Processor time of this process and of its children that have ended."""
    every = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in every)


def slowness() -> float:
    """By what factor this machine, as busy as it is, is slower than where the limit was set."""
    taken = []
    for _ in range(3):
        begun, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number * number
        taken.append(time.process_time() - begun)
    return max(sum(taken) / len(taken) / NOMINAL, 1.0)


class Pace:
    """Times every test; lists the dearest."""

    def __init__(self, shown: int) -> None:
        self.shown = shown
        self.taken: list[tuple[float, str, bool]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        begun = spent()  # what several tests share is no one's
        result = yield
        took = spent() - begun
        item.user_properties.append(("processor_time", took))
        marked = any(item.get_closest_marker(mark) for mark in _MARKS)
        if not marked and took > LIMIT and took > LIMIT * slowness():
            pytest.fail(f"{took:.1f} s of processor time: make it quicker, or mark it slow", False)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, took in report.user_properties if report.when == "call" else ():
            if name == "processor_time":
                self.taken.append((float(took), report.nodeid, "slow" in report.keywords))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slow = sum(took for took, _, marked in self.taken if marked)
        terminalreporter.section("processor time")
        for took, name, marked in sorted(self.taken, reverse=True)[: self.shown]:
            terminalreporter.line(f"{took:7.2f} s  {'slow' if marked else '    '}  {name}")
        total = sum(took for took, *_ in self.taken)
        terminalreporter.line(f"{total:.0f} s in all, {slow:.0f} of slow tests (of {BUDGET:.0f})")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pace", type=int, metavar="N", help="take times and list the N dearest")


def pytest_configure(config: pytest.Config) -> None:
    shown = config.getoption("--pace")
    if shown is not None:
        config.pluginmanager.register(Pace(shown))
