"""Every status and flag in words."""

from __future__ import annotations

MEANINGS = {
    "completed": "the run went to its last step",
    "diverged": "the loss, a weight or a probability became infinite or undefined; the run counts "
    "with the worst score",
    "no_signal": "no group of completions had unequal rewards in the first steps: a fault of the "
    "set-up, no score",
    "pruned": "stopped early by the search; no score",
    "given up": "no record, and its retries are spent; a launch with retry=true reopens it",
    "missing": "planned, no record yet",
    "early_stopping": "the search stops poor learning rates early: it selects one, and estimates "
    "no curve, ratio or difference",
    "joint_search": "settings and learning rates were searched together, some more than others: a "
    "setting is selected, and no curve, ratio or difference is estimated",
    "ablation": "arms that change one factor at a time between two settings: no claim is decided",
    "precision_artefact": "a 16-bit copy of the weights says that most of them did not change, the "
    "float32 weights that were trained did: the sparsity is made by rounding",
    "interaction": "whether an effect is the same in two settings, not how large it is",
    "few_seeds": "fewer than 3 seeds: points, no interval, no verdict",
    "edge_low": "the plateau reaches the low end of the grid: the best learning rate is an upper "
    "bound, extend the grid downwards",
    "edge_high": "the plateau reaches the high end of the grid: the best learning rate is a lower "
    "bound, extend the grid upwards",
    "edge_seed": "the curve of some single seed does not leave the plateau inside the grid",
    "few_points": "too few learning rates, or too coarse a grid beside the plateau: no interval",
    "flat": "the rise over the untrained model is too small against the noise: no best learning "
    "rate",
    "parabola": "the untrained model was never evaluated: the best learning rate is the vertex of "
    "a parabola, without plateau",
    "unresolved": "an edge of the plateau is sharper than the grid; a finer grid there would "
    "narrow the interval",
    "not_unimodal": "the mean curve has more than one hump; look at the points",
    "shape_differs": "the two curves are not shifted copies of each other: ramp and cliff give "
    "different ratios, the verdict uses the centre",
    "saturated": "every completion of the last steps was correct",
    "truncated": "more than half of the last completions hit the length limit",
    "scorer_errors": "the scorer raised an error on some completions, which counted as wrong",
    "pooled_sd": "the interval uses the run SD pooled over plateau and report runs, not the paired "
    "differences alone",
    "cross_fitted": "search seeds choose the rate and score it, each seed scored at the rate that "
    "the others choose",
    "unfinished": "runs are missing, so nothing is decided",
    "incomplete": "a phase lacks scores that the comparison needs",
    "no_baseline": "no full fine-tuning to compare with",
    "no_gain": "full fine-tuning gains too little over the untrained model to keep up with",
    "no_base": "the untrained model was never evaluated, so there is no gain to take a margin from",
    "precision_unknown": "the import does not say in which precision the arms ran",
    "parameters_differ": "no two arms have the same number of trained parameters",
    "equal_parameters": "a contrast of arms with equally many trained parameters: it decides",
    "equal_rank": "a contrast of arms of one rank, whose numbers of trained parameters differ",
    "few_lengths": "too few lengths of training at which both arms have a best learning rate",
    "schedule": "the learning-rate schedule has a horizon, so a run cut short is no short run",
    "no_report": "an arm of the comparison has no report seeds",
    "curved": "the differences do not lie on a straight line, so one slope does not describe them",
    "wide_error": "the standard error of a ratio is above 0.06 decades",
    "precision_differs": "the arms run in different precisions",
    "no_spread": "every seed gave the same difference, so its spread is unknown",
    "stale_selection": "the report runs were made at another learning rate than the one the "
    "search now prefers",
    "alpha_rules_differ": "the LoRA arms scale their updates by different rules",
    "low": "the selected learning rate is the lowest of the grid",
    "high": "the selected learning rate is the highest of the grid",
}


def meaning(code: str) -> str:
    """A status or flag in words; the code itself where no words are known."""
    return MEANINGS.get(code, code.replace("_", " "))
