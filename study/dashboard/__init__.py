"""Optuna Dashboard on an experiment: read only, on this machine only unless told otherwise."""
