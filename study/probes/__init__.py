"""What training did to a model, beside its score; ``probes.json`` in a run's directory.

Measured at the end of a run (``probes=default``), or afterwards on stored runs that kept their
weights: ``python -m study.probes runs/quickstart``. :mod:`.result` documents the file,
:mod:`.weights` measures weights.
"""
