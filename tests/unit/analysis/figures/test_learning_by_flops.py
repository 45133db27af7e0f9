"""Learning curves against FLOPs: the numbers, worked by hand."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pandas as pd
import pytest

from analysis.estimates.search import search_summary
from analysis.figures.learning import LearningFigure, learning_figure
from analysis.figures.learning_by_flops import FIGURE, METRIC, UNIT, flops_figure
from analysis.reading.sweep import Sweep
from tests.unit.analysis.figures.drawn_sweeps import Drawn, sweep_of
from tests.unit.analysis.figures.test_drawing import drawn

PER_STEP = 1e6


def with_flops(sweep: Sweep, unknown: Collection[str] = ()) -> Sweep:
    """Every evaluation but the one at step 0 has its FLOPs: a megaflop a step, times 1 + the seed.

    Report seeds are 100, 101 and so on, LoRA's steps cost half.
    """
    scores = sweep.metrics[sweep.metrics["metric"] != METRIC]
    rows = scores[(scores["step"] > 0) & ~scores["run_id"].isin(set(unknown))]
    seed = rows["run_id"].str.rsplit("-", n=1).str[-1].astype(int)
    share = rows["run_id"].str.startswith("lora").map({True: 0.5, False: 1.0})
    spent = rows.assign(metric=METRIC, value=rows["step"] * PER_STEP * share * (seed - 99))
    return replace(sweep, metrics=pd.concat([scores, spent], ignore_index=True))


def curves(sweep: Sweep) -> LearningFigure:
    return flops_figure(sweep, search_summary(sweep))


@pytest.fixture
def plain() -> Sweep:
    return sweep_of({"full": Drawn(), "lora-r8": Drawn(8)})


def test_scores_stay_and_places_are_flops(plain: Sweep) -> None:
    found = curves(with_flops(plain))
    by_prompts = learning_figure(plain, search_summary(plain))
    assert found.unit == UNIT
    for own, other in zip(found.curves, by_prompts.curves, strict=True):
        assert own.means == other.means
        steps = [prompts / 8 for prompts in other.prompts]  # 8 prompts a step
        share = 1.0 if own.arm.is_full else 0.5
        n = len(own.seeds)
        mean = PER_STEP * share * (n + 1) / 2  # seeds cost 1, 2, ..., n megaflops a step
        assert own.prompts == pytest.approx([step * mean for step in steps])
        first = own.seeds[0]
        assert first.scores == other.seeds[0].scores
        assert first.prompts == pytest.approx([step * PER_STEP * share for step in steps])


def test_a_run_without_flops_is_left_out_and_takes_the_mean_with_it(plain: Sweep) -> None:
    report = plain.runs[(plain.runs["phase"] == "report") & (plain.runs["arm"] == "full")]
    lost = report["run_id"].iloc[0]
    full, lora = curves(with_flops(plain, [lost])).curves
    assert lost not in [seed.run_id for seed in full.seeds]
    assert len(full.seeds) == len(report) - 1 and full.means == ()
    assert lora.means != ()
    gone = curves(with_flops(plain, list(report["run_id"])))
    assert gone.shown == ["lora-r8"]
    assert "full" in FIGURE.caption(gone)


def test_a_diverged_run_ends_where_it_ended(plain: Sweep) -> None:
    runs = plain.runs
    lost = runs.loc[(runs["phase"] == "report") & (runs["arm"] == "full"), "run_id"].iloc[0]
    sweep = sweep_of({"full": Drawn(), "lora-r8": Drawn(8)}, diverged=[lost])
    full = curves(with_flops(sweep)).curves[0]
    ends = {seed.run_id: seed.prompts[-1] for seed in full.seeds}
    others = [seed for seed in full.seeds if not seed.diverged]
    assert ends[lost] < others[0].prompts[-1]
    # The mean stands at the mean of those that went on, all along.
    for index, place in enumerate(full.prompts):
        mean = sum(seed.prompts[index] for seed in others) / len(others)
        assert place == pytest.approx(mean)


def test_it_is_drawn_with_its_unit_and_asked_of_no_sweep_without_flops() -> None:
    arms = {"full": Drawn(), "lora-r8": Drawn(8)}
    assert METRIC in FIGURE.lacks(sweep_of(arms, records=False))
    sweep = sweep_of(arms)
    assert FIGURE.lacks(sweep) == ""
    canvas = drawn(FIGURE, sweep, search_summary(sweep))
    assert canvas is not None
    assert any(ax.get_xlabel() == UNIT for ax in canvas.axes)
