"""Where sweeps come from: one module a source, each a function that returns a :class:`RawSweep`.

Optuna and W&B are imported here alone, and only once they are asked for.
"""

from analysis.reading.sources.raw import RawSweep, SourceOptions, read_source

__all__ = ["RawSweep", "SourceOptions", "read_source"]
