"""Noisy sweeps with a known truth."""
