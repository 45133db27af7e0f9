"""Sums of a session, whether one process runs the tests or several (``pytest -n``)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sums import DEVIATIONS, TALLY, add, counted


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # one of several processes
        session.config.workeroutput["counted"] = counted()


@pytest.hookimpl(optionalhook=True)  # known where pytest-xdist is
def pytest_testnodedown(node: Any) -> None:
    if counts := getattr(node, "workeroutput", {}).get("counted"):
        add(counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY.injections:
        terminalreporter.write_line(TALLY.line())
    if DEVIATIONS:
        terminalreporter.section("packed against TRL: largest relative deviations")
        for name, deviation in sorted(DEVIATIONS.items()):
            terminalreporter.line(f"{name}: {deviation:.1e}")
