"""Numbers with intervals: curves, optima, differences, tests."""
