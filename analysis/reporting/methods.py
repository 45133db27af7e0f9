"""How the numbers of a report came about, in sentences read off its plan and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.estimates.plateau import FRACTION
from analysis.estimates.search import SearchSummary
from analysis.reading.arms import Arm, arms, rate_text
from analysis.reading.sweep import Sweep
from analysis.reporting.imports import grid_sentence, import_methods

MAX_ARMS = 12
"""Arms that the paragraph describes one by one."""


def methods(sweep: Sweep, search: SearchSummary) -> list[str]:
    """How the numbers came about, in sentences read off the plan and the records."""
    if sweep.imported:
        return [*import_methods(sweep, search), _intervals(sweep, search)]
    looks = int(sweep.plan["looks"])
    return [
        *_objective_sentences(sweep),
        *_arm_sentences(sweep),
        _seeds_sentence(sweep),
        f"A run's score is the mean over its last {_setting(sweep, 'evaluation', 'final_window')} "
        f"evaluations of the accuracy on {_setting(sweep, 'evaluation', 'eval_prompts')} fixed "
        "held-out prompts, one completion each, sampled at temperature "
        f"{_setting(sweep, 'objective', 'temperature')} as in training; greedy accuracy is "
        "beside it. Diverged runs count with the worst score, 0, and are never dropped; the best "
        "evaluation of a run is stored and not used.",
        f"Precision: {_precision(sweep)}. Engine: {sweep.plan.get('engine', 'unknown')}. "
        f"Runs were added to the plan in {looks} launch{'' if looks == 1 else 'es'}.",
        _intervals(sweep, search),
    ]


def _intervals(sweep: Sweep, search: SearchSummary) -> str:
    common = "Intervals are Student's t over seeds at 90 %; seeds are the unit of replication. "
    if sweep.is_joint:
        return common + _joint_search(sweep)
    if sweep.stops_early:
        return common + _early_stopping(sweep)
    return common + _best_rate(search) + _refined(sweep)


def _best_rate(search: SearchSummary) -> str:
    if search.curves and all(curve.base is None for curve in search.curves.values()):
        return (
            "The untrained model was never evaluated, so no plateau can be cut: the best learning "
            "rate (LR*) is the vertex of the parabola through the best grid point and its two "
            "neighbours, on the log axis, and its interval adds a term for the spacing of the "
            "grid. An arm that is best at an end of its grid has only a bound."
        )
    return (
        "The best learning rate (LR*) is the log-midpoint of the plateau, the rates whose mean "
        f"score is within f = {_fractions(search)} of the rise below the top. Intervals of "
        "learning rates add a grid term: the place of an edge between two grid points is unknown "
        "however many seeds there are."
    )


def _fractions(search: SearchSummary) -> str:
    """``0.20``, or ``0.05 to 0.20, by model, task and objective``."""
    shown = sorted({f"{fraction:.2f}" for fraction in search.fractions.values()})
    if len(shown) > 1:
        return f"{shown[0]} to {shown[-1]}, by model, task and objective,"
    return shown[0] if shown else f"{FRACTION:.2f}"


def _joint_search(sweep: Sweep) -> str:
    best = sweep.experiment["best"]
    return (
        f"Joint search: {best['trials']} trials, each an arm at a learning rate, suggested from "
        "the scores of earlier ones by a tree-structured Parzen estimator; the "
        f"{best['finalists']} of best mean search score ran again on the report seeds. Arms were "
        "searched unequally, so they are not compared."
    )


def _refined(sweep: Sweep) -> str:
    refine = sweep.experiment.get("refine")
    if refine is None:
        return ""
    return (
        f" Around each arm's best rate {refine['points']} more were tried, placed by a Gaussian "
        "process; they may be selected, and enter no curve, plateau or ratio."
    )


def _early_stopping(sweep: Sweep) -> str:
    settings = sweep.experiment["early_stopping"]
    return (
        f"Early stopping: at step {settings['grace_steps']} and each doubling of it, the share "
        f"{settings['keep']:g} of an arm's learning rates went on, ranked by mean accuracy over "
        f"search seeds (of the last {settings['window']} evaluations, where there were so many); "
        "the others were stopped with all their seeds. Their scores are censored: they enter no "
        "mean, curve or ratio."
    )


def _objective_sentences(sweep: Sweep) -> list[str]:
    """A sentence for each objective of the sweep."""
    names: dict[str, list[str]] = {}
    for name, arm in sweep.plan["arms"].items():
        kind = str(arm["config"].get("objective", {}).get("name", "unknown"))
        names.setdefault(kind, []).append(name)
    whose = {kind: f" of {', '.join(of)}" if len(names) > 1 else "" for kind, of in names.items()}
    return [f"Objective{whose[kind]}: {_objective(sweep, kind, of)}" for kind, of in names.items()]


def _objective(sweep: Sweep, kind: str, names: Sequence[str]) -> str:
    def of(key: str) -> str:
        return _setting(sweep, "objective", key, names)

    optimizer = (
        f"schedule {of('lr_scheduler_type')}, weight decay {of('weight_decay')}, gradient norm "
        f"clipped at {of('max_grad_norm')}"
    )
    if kind == "sft":
        return (
            "sft (next-token prediction on worked solutions, mean over the tokens of a step), "
            f"{of('steps')} AdamW steps of {of('prompts_per_step')} solutions each, {optimizer}."
        )
    return (
        f"{kind} (loss_type {of('loss_type')}, scale_rewards {of('scale_rewards')}, beta "
        f"{of('beta')}), {of('steps')} AdamW steps of {of('prompts_per_step')} prompts with "
        f"{of('num_generations')} completions each, {optimizer}{_variants(sweep, names)}."
    )


def _variants(sweep: Sweep, names: Sequence[str]) -> str:
    """What the loss of arms has beyond plain GRPO, by arm where they differ in it."""
    found: dict[str, list[str]] = {}
    for name in names:
        config = sweep.plan["arms"][name]["config"]
        found.setdefault(_variant(config.get("objective", {})), []).append(name)
    if len(found) == 1:
        return "".join(f", {said}" for said in found if said)
    return "".join(f"; {said or 'plain'} ({', '.join(of)})" for said, of in found.items())


def _variant(objective: Mapping[str, Any]) -> str:
    """In words; plans of before these settings have none."""
    said = []
    if alpha := objective.get("entropy_shaping", {}).get("alpha"):
        said.append(f"advantages shaped by entropy (alpha {alpha:g})")
    if (kept := objective.get("top_entropy_quantile", 1.0)) < 1:
        said.append(f"only the {kept:.0%} of tokens with the highest entropy trained")
    if (level := objective.get("importance_sampling_level", "token")) != "token":
        said.append(f"importance weights by {level}")
    return ", ".join(said)


def _arm_sentences(sweep: Sweep) -> list[str]:
    """A sentence an arm; of many arms only what they ran at, since their names tell the rest."""
    found = arms(sweep)
    if len(found) > MAX_ARMS:
        return [grid_sentence(sweep)]
    return [_arm_sentence(sweep, arm) for arm in found]


def _arm_sentence(sweep: Sweep, arm: Arm) -> str:
    plan = sweep.plan["arms"][arm.name]
    grid = ", ".join(rate_text(rate) for rate in sorted(plan["learning_rates"]))
    grid = f"learning rates {grid or 'none'}"
    if arm.is_full:
        return f"{arm.name}: every parameter is trained; {grid}."
    method = plan["config"].get("method", {})
    mine = sweep.runs[sweep.runs["arm"] == arm.name]
    alphas = sorted({f"{alpha:g}" for alpha in mine["lora_alpha"].dropna()})
    counts = sorted({len(names) for names in mine["target_modules"]})
    alpha = f", alpha {' or '.join(alphas)}" if alphas else ""
    count = f" ({' or '.join(map(str, counts))} modules)" if counts else ""
    return (
        f"{arm.name}: LoRA of rank {arm.rank}{alpha} by the rule {method.get('alpha_rule')}, "
        f"scaled by alpha / rank, on {method.get('target_modules')}{count}; {grid}."
    )


def _seeds_sentence(sweep: Sweep) -> str:
    seeds = sweep.experiment["seeds"]
    search, report = (_numbers(seeds.get(phase, [])) for phase in ("search", "report"))
    if not seeds.get("report"):
        return f"Seeds: {search or 'none'}; there is no report phase."
    return (
        f"Search seeds {search} choose each arm's learning rate (best mean, ties to the lower "
        f"rate); fresh report seeds {report} give its score there."
    )


def _numbers(values: Iterable[object]) -> str:
    return ", ".join(str(value) for value in values)


def _setting(sweep: Sweep, group: str, key: str, names: Iterable[str] | None = None) -> str:
    """A setting, by arm where arms differ in it; of ``names``, or of all."""
    values: dict[str, list[str]] = {}
    for name in sweep.plan["arms"] if names is None else names:
        value = sweep.plan["arms"][name]["config"].get(group, {}).get(key, "unknown")
        values.setdefault(f"{value:g}" if isinstance(value, float) else str(value), []).append(name)
    if len(values) == 1:
        return next(iter(values))
    return " / ".join(f"{value} ({', '.join(names)})" for value, names in values.items())


def _precision(sweep: Sweep) -> str:
    found = {
        ", ".join(f"{part} {dtype}" for part, dtype in sorted(dtypes.items()))
        for dtypes in sweep.runs["dtypes"]
        if isinstance(dtypes, dict)
    }
    return " / ".join(sorted(found)) or "no record yet"
