"""The run directory and where a run came from."""
