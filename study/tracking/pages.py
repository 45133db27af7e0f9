"""A W&B workspace and report of one experiment: what they show, built without a network."""

from __future__ import annotations

from typing import Any

import wandb_workspaces.expr as expr
import wandb_workspaces.reports.v2 as wr
import wandb_workspaces.workspaces as ws

from study.plan.experiment import Plan

SCORE = "score_final"
RATE = "objective.learning_rate"
CURVE = "eval/accuracy"
RATE_COLUMN = "objective.value.learning_rate"


def workspace(plan: Plan, entity: str, project: str) -> ws.Workspace:
    """A view of the project that is filtered to the experiment."""
    sections = [
        ws.Section(name="Rank and learning rate", panels=curves_over_settings(), is_open=True),
        ws.Section(name="Learning curves", panels=learning_curves(), is_open=True),
        ws.Section(name="What matters", panels=what_matters(plan), is_open=True),
    ]
    columns = ["run:displayName", f"summary:{SCORE}", f"config:{RATE_COLUMN}", "summary:status"]
    return ws.Workspace(
        entity=entity,
        project=project,
        name=plan.experiment.name,
        sections=sections,
        runset_settings=ws.RunsetSettings(
            filters=[expr.Metric("Group") == plan.experiment.name],
            groupby=[expr.Config("arm")],
            pinned_columns=columns,
        ),
    )


def report(plan: Plan, entity: str, project: str) -> wr.Report:
    """A page that opens with the experiment's question; search and report runs stay apart."""
    experiment = plan.experiment
    grids = [
        (
            "Rank and learning rate",
            "Search seeds: every learning rate of every arm. Full fine-tuning has no rank.",
            _runset(plan, "search"),
            curves_over_settings(),
        ),
        (
            "Learning curves",
            "Report seeds: each arm at its chosen learning rate. Band: smallest to largest run.",
            _runset(plan, "report"),
            learning_curves(),
        ),
        (
            "What matters",
            "Search seeds. Importance is a statement about these runs, not about causes.",
            _runset(plan, "search"),
            what_matters(plan),
        ),
    ]
    blocks: list[Any] = [
        wr.P(f"Hypothesis: {experiment.hypothesis}"),
        wr.P(f"Decided by: {experiment.decision_metric}. {experiment.criterion}"),
        wr.P("Verdicts and intervals are in the report of `python -m analysis report`."),
    ]
    for heading, text, runset, panels in grids:
        blocks += [wr.H2(heading), wr.P(text), wr.PanelGrid(runsets=[runset], panels=panels)]
    title = f"{experiment.name}: LoRA and full fine-tuning"
    return wr.Report(entity=entity, project=project, title=title, blocks=blocks, width="fluid")


def _runset(plan: Plan, phase: str) -> wr.Runset:
    """Runs of one phase; where no project is named, W&B takes that of the page."""
    return wr.Runset(
        name=f"{phase} runs",
        filters=[
            expr.Metric("Group") == plan.experiment.name,
            expr.Config("phase") == phase,
        ],
    )


def curves_over_settings() -> list[Any]:
    """Reward against rank and against learning rate, a dot a run, and the arms' means."""
    score = wr.SummaryMetric(SCORE)
    return [
        wr.ScatterPlot(
            title="reward against rank",
            x=wr.Config("lora_rank"),
            y=score,
            log_x=True,
            layout=wr.Layout(x=0, y=0, w=8, h=8),
        ),
        wr.ScatterPlot(
            title="reward against learning rate",
            x=wr.Config(RATE),
            y=score,
            log_x=True,
            layout=wr.Layout(x=8, y=0, w=8, h=8),
        ),
        wr.BarPlot(
            title="reward by arm, mean over all runs shown",
            metrics=[SCORE],
            groupby=wr.Config("arm"),
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
            layout=wr.Layout(x=16, y=0, w=8, h=8),
        ),
    ]


def learning_curves() -> list[Any]:
    """Held-out accuracy and training reward by step, a line an arm."""
    titles = {CURVE: "held-out accuracy", "train/reward": "training reward"}
    return [
        wr.LinePlot(
            title=title,
            x="step",
            y=[metric],
            title_x="optimizer step",
            groupby=wr.Config("arm"),
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
            max_runs_to_show=100,
            layout=wr.Layout(x=12 * i, y=0, w=12, h=9),
        )
        for i, (metric, title) in enumerate(titles.items())
    ]


def what_matters(plan: Plan) -> list[Any]:
    """Parallel coordinates over the factors, and their importance for the reward."""
    varied = [wr.ParallelCoordinatesPlotColumn(wr.Config(key)) for key in varied_factors(plan)]
    rate = wr.ParallelCoordinatesPlotColumn(wr.Config(RATE), display_name="learning rate", log=True)
    score = wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(SCORE), display_name="reward")
    return [
        wr.ParallelCoordinatesPlot(
            title="factors, learning rate and reward",
            columns=[*varied, rate, score],
            layout=wr.Layout(x=0, y=0, w=14, h=9),
        ),
        wr.ParameterImportancePlot(with_respect_to=SCORE, layout=wr.Layout(x=14, y=0, w=10, h=9)),
    ]


def varied_factors(plan: Plan) -> list[str]:
    """Factors that have more than one value among the arms that have them, as config keys."""
    values: dict[str, set[str]] = {}
    for arm in plan.arms.values():
        for key, value in arm.factors.items():
            values.setdefault(key, set()).add(str(value))
    return sorted(key for key, found in values.items() if len(found) > 1)
