"""(experiment, records) -> ordered runs with ids and a bill. Pure: no torch, no Hydra, no files."""
