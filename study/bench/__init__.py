"""``python -m study.bench``: the engines ``trl`` and ``packed`` on the same runs, in turns.

One thread, and figures that survive a machine whose speed drifts: every round measures both
engines one after the other and yields a ratio; what is quoted is the median of the ratios with
their spread. Beside wall time stands **busy time**, what the process computed: its CPU time, or on
a GPU wall time again. Where the two differ, somebody else had the core.

The unit of time is the **run-step**: one optimizer step of one run, sampling included; a step of a
pack of K runs is K of them. Start-up and evaluation are left out of it and shown apart.

A run whose rewards are all equal has no gradient, and ``packed`` leaves such groups out of its
training pass. So a step is also measured under a reward without any sense, the parity of the
completion's hash (``reward: parity``): nearly every group is unequal, which is the packed engine's
worst case. ``unequal_share`` says how many groups were.

``--json FILE`` writes one object; sizes are bytes, times seconds. A *spread* is
``{median, low, high}`` over the rounds.

``machine``
    ``cpu gpu cores threads python platform packages git_commit git_dirty``,
    ``load_average: {start, end}`` (1 minute; ``end`` before the sweep) and ``quiet``: whether both
    were below 0.7 of the cores; if not, quote no figure.
``steps``
    A list, one entry a case: ``model hidden_size layers rows prompts num_generations method
    reward lanes``; ``rounds``, a list of ``{trl, packed, floor_s}`` with
    ``{step_s step_busy_s evaluation_s unequal_share completion_tokens}`` for each engine, per
    run; and spreads over rounds: ``ratio`` (trl / packed, wall time), ``busy_ratio``,
    ``evaluation_ratio``, ``floor_share`` and ``trl_floor_share`` (arithmetic floor / step, both
    in busy time; see :mod:`study.bench.floor`), ``gemm_flops`` (FLOP/s of the model's matrix
    products in training).
``scaling``
    A list: ``model rows method reward lanes``, spreads ``step_s`` and ``step_busy_s`` (a run-step
    of the packed engine), ``speedup`` and ``busy_speedup`` over one lane of the same round.
``memory``
    Peaks of separate processes: ``imported_bytes`` (libraries alone), ``one_run_bytes``,
    ``pack_bytes`` of ``lanes`` runs, ``states_bytes`` (all adapters with gradient and moments),
    ``ratio`` = (pack - states) / one run.
``sweep``
    A list, one entry for 64 and 16 rows: ``rows runs workers steps evaluations``; ``trl`` and
    ``packed`` with ``{wall_s, training_s}`` (the whole command; from the first run's start to the
    last record), ``ratio``, ``training_ratio``, ``equal_scores``: runs with the same final score
    under both engines.
"""
