"""Fixtures of the fault tests, and what they inflicted."""

from __future__ import annotations

import pytest

from tests.faults.tally import TALLY
from tests.unit.analysis.reporting.conftest import no_pixels

__all__ = ["no_pixels"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TALLY.injections:
        terminalreporter.write_line(TALLY.line())
