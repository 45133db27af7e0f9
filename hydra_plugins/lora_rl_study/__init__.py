"""Hydra's ``-m`` with our sweeper, and a launcher that starts workers on this machine."""
