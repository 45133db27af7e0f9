"""Reads what ``study`` wrote: optima, claims, figures, report. Never imports torch."""
