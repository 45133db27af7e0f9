"""Engines: one run after the other through TRL."""
