from __future__ import annotations

import pytest

from analysis.figures import report as figures_report
from analysis.reading.load import load
from analysis.reporting.report import Report, write_report
from tests.doubles import write_synthetic_experiment


@pytest.fixture
def no_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are drawn by other tests: here they would cost seconds per page."""
    monkeypatch.setattr(figures_report, "figure", lambda *_: b"<svg/>")


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a complete synthetic experiment, figures and all."""
    path = tmp_path_factory.mktemp("runs") / "quickstart"
    return write_report(load(write_synthetic_experiment(path)))
