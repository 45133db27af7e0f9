"""Fixtures of the fault tests."""

from __future__ import annotations

from tests.unit.analysis.reporting.conftest import no_pixels

__all__ = ["no_pixels"]
