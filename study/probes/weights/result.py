"""The object ``weights`` of ``probes.json``: what training did to the weights.

From the outside in:

* ``weights`` (``adapter`` or ``model``), ``save`` (``last`` or ``best``: of which step they are),
  and ``dtype``, the precision of what was trained.
* ``settings``: ``draws`` and ``seed`` of the null; ``null_coverage``, the chance that one more
  random update lies in a null's range; ``subspace_share``, ``mask_share``, ``energy_tops``,
  ``intruder_top`` and ``intruder_cosine``; ``absolute_tolerance`` and ``relative_tolerance``.
* ``trained``: the four counts over every parameter that was trained, biases, norms and embeddings
  included: ``parameters``, and how many of them are unchanged by ``bf16``, ``absolute``,
  ``relative`` and ``fp32`` (null where training had no fp32 weights); see :mod:`.sparsity`.
  ``other``: the same for what is no matrix of a layer, by type.
* ``overall``, ``by_module`` and ``by_depth`` (layers from 0): the trained matrices of layers,
  summed up: ``matrices`` (how many), ``counts``, ``observed`` and ``null``.
* ``matrices``: each of them: ``name``, ``module``, ``depth``, ``shape`` [out, in], and the same.

``observed`` maps statistics to numbers, null where one has no meaning (say, no update):

* ``relative_norm``: Frobenius norm of the update over that of the matrix.
* ``unchanged_bf16``, ``_absolute``, ``_relative``, ``_fp32``: the counts as shares.
* ``numerical_rank``, ``stable_rank``, ``effective_rank``, two of them also as a ``_share`` of
  min(m, n), and ``energy_top_K``: :mod:`.spectrum`.
* ``angle_left_mean_deg``, ``_max_deg``, ``angle_right_...``: principal angles between the leading
  subspaces before and after, in degrees: :mod:`.rotation`.
* ``spectral_shift``: :mod:`.spectrum`.
* ``visible_on_principal``, ``visible_on_low``: how densely the update covers the principal and the
  smallest weights, over how densely it covers all; 1 is independence. Visible is what changed in
  bf16, whose rounding alone favours small weights: the null shows by how much.
  ``largest_on_principal``, ``largest_on_low``: the same for the largest entries of the update,
  where nothing is rounded. :mod:`.masks`.
* ``intruders``: :mod:`.intruders`.

``null`` has, for ``gaussian`` and ``turned`` (:mod:`.null`), each of these statistics'
``mean``, ``low`` and ``high`` over the draws; ranks only where they are free. A run's statistic
outside of ``low`` to ``high`` differs from chance at 1 - ``null_coverage``; many of them are looked
at, so some do by luck. The seeds of an experiment, not the draws, say how far a run stands for its
arm.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

from study.probes.settings import Settings, Told, range_coverage
from study.probes.stored import StoredRun
from study.probes.weights import intruders, sparsity
from study.probes.weights.groups import by_depth, by_module, depth, module_type, summarized
from study.probes.weights.matrix import MatrixResult, Pair, measure_matrix, unchanged
from study.probes.weights.pairs import Tensors, masters, trained_pairs
from study.probes.weights.sparsity import Unchanged, pooled


def measure_weights(
    run: StoredRun, base: Tensors, settings: Settings, told: Told
) -> dict[str, Any]:
    """Measure a stored run.

    Args:
        run: The run.
        base: What it started from.
        settings: Shares, draws and seed.
        told: Told of every tensor when it is done, and of every draw before that.

    Returns:
        The object ``weights``.

    Raises:
        ValueError: If the stored weights are not those that the record describes.
    """
    results = list[MatrixResult]()
    others: dict[str, list[Unchanged]] = defaultdict(list)
    for pair in trained_pairs(run, base):
        if is_layer_matrix(pair):
            results.append(measure_matrix(pair, settings, told))
        else:
            others[module_type(pair.name)].append(unchanged(pair))
        told(pair.name, True)
    if not results:
        raise ValueError(f"{run.weights} holds no matrix of a layer")
    everything = [*(r.unchanged for r in results), *(c for part in others.values() for c in part)]
    return {
        "weights": run.weights.name,
        "save": run.config.save,
        "dtype": masters(run.record),
        "settings": _settings(settings),
        "trained": asdict(pooled(everything)),
        "other": {name: asdict(pooled(part)) for name, part in others.items()},
        "overall": summarized(results),
        "by_module": {name: summarized(part) for name, part in by_module(results).items()},
        "by_depth": {name: summarized(part) for name, part in by_depth(results).items()},
        "matrices": [_matrix(result) for result in results],
    }


def is_layer_matrix(pair: Pair) -> bool:
    """Whether a tensor is the matrix of a linear layer: embeddings and heads are in no layer."""
    return pair.before.ndim == 2 and depth(pair.name) is not None


def _settings(settings: Settings) -> dict[str, Any]:
    return {
        **asdict(settings),
        "null_coverage": range_coverage(settings.draws),
        "intruder_top": intruders.TOP,
        "intruder_cosine": intruders.COSINE,
        "absolute_tolerance": sparsity.ABSOLUTE_TOLERANCE,
        "relative_tolerance": sparsity.RELATIVE_TOLERANCE,
    }


def _matrix(result: MatrixResult) -> dict[str, Any]:
    own = summarized([result])
    del own["matrices"]
    facts = {"name": result.name, "module": module_type(result.name), "depth": depth(result.name)}
    return {**facts, "shape": list(result.shape), **own}
