"""``python -m study.adapters``: what can be done with adapters once they are trained.

``list`` says what there is, ``eval`` measures many adapters on many tasks on one frozen base,
``combine`` adds adapters up, ``merge`` writes one into the base, ``export`` makes a directory for
PEFT or vLLM. Nothing ever writes to a run's directory or to the base.
"""
