"""The mirror to Weights & Biases.

Fed from the run directories, which stay the truth: it can be made while a sweep runs, afterwards,
again, or elsewhere, and training never waits for it. Each run becomes one W&B run, whose id is made
of experiment and run id. It is first written without any network, by W&B itself, as the file that
``wandb leet`` shows; in mode ``online`` that file is then uploaded by ``wandb sync``, in a process
that may hang, fail or be killed and be started again: rows are sent at their line numbers, so that
nothing is ever there twice.
"""
