"""The methods paragraph is read off the plan and the records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from analysis.claims.comparison import comparisons
from analysis.estimates.power import seeds_for_margin
from analysis.estimates.search import search_summary
from analysis.reading.load import load
from analysis.reporting.methods import methods
from analysis.reporting.provenance import provenance_lines
from analysis.reporting.report import Report, write_report
from analysis.reporting.seeds import seed_needs
from tests.doubles import LORA_GRID, SyntheticArm, write_synthetic_experiment
from tests.unit.analysis.reporting.pages import page


def test_methods_are_read_off_the_plan(finished: Report) -> None:
    text = page(finished).text

    for said in (
        "200 AdamW steps of 8 prompts with 8 completions each",
        "full: every parameter is trained; learning rates 2e-5, 6e-5, 2e-4, 6e-4, 2e-3.",
        "lora-r8: LoRA of rank 8, alpha 32 by the rule constant, scaled by alpha / rank, on all "
        "(14 modules)",
        "Search seeds 0, 1, 2 choose",
        "mean over its last 3 evaluations of the accuracy on 512 fixed held-out prompts",
        "adapter float32, base float32, optimizer float32",
        "Runs were added to the plan in 1 launch.",
        "mean score is within f = 0.20 of the rise below the top",
        "Intervals of learning rates add a grid term",
        "torch: 2.13.0",
    ):
        assert said in text, said


@pytest.mark.usefixtures("no_pixels")
def test_a_plan_without_a_hypothesis_is_no_obstacle(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    plan = json.loads((path / "plan.json").read_text())
    del plan["experiment"]["hypothesis"]
    (path / "plan.json").write_text(json.dumps(plan))

    assert "Hypothesis" not in page(write_report(load(path))).text


def test_methods_say_the_plateau_fraction_that_was_used(tmp_path: Path) -> None:
    # The shallow curve ends 0.06 below its top of 0.50; the rise is 0.32: f = 0.5 * 0.06 / 0.32.
    shallow = SyntheticArm(8, LORA_GRID, (0.40, 0.45, 0.50, 0.50, 0.44), 0.5)
    path = write_synthetic_experiment(tmp_path / "q", arms={"lora-r8": shallow})
    plan = json.loads((path / "plan.json").read_text()) | {"looks": 3}
    (path / "plan.json").write_text(json.dumps(plan))
    sweep = load(path)
    search = search_summary(sweep)
    said = " ".join(methods(sweep, search))

    assert search.fraction_of(*search.curves) == pytest.approx(0.09375)
    assert "within f = 0.09 of the rise" in said and "in 3 launches." in said


def test_many_arms_are_described_at_once(tmp_path: Path) -> None:
    arms = {
        f"lora-r{rank}": SyntheticArm(rank, LORA_GRID, (0.2, 0.3, 0.5, 0.4, 0.1), 0.5)
        for rank in range(1, 14)
    }
    path = write_synthetic_experiment(tmp_path / "q", arms=arms, search_seeds=(0,), report_seeds=())
    sweep = load(path)
    said = methods(sweep, search_summary(sweep))

    assert "13 arms at 5 learning rates each, from 2e-4 to 2e-2." in said
    assert not any(sentence.startswith("lora-r13:") for sentence in said)


def test_flags_and_statuses_on_the_page_are_in_the_glossary(finished: Report) -> None:
    glossary = re.search(r'<dl class="glossary">(.*?)</dl>', page(finished).html, re.DOTALL)

    assert glossary is not None
    for code in {"completed", *(flag for v in finished.verdicts for flag in v.flags)}:
        assert f"<dt>{code}</dt>" in glossary[1]


def test_the_seeds_that_a_margin_needs_come_from_the_noise_floor(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q"))
    search = search_summary(sweep)

    assert search.floor is not None and search.floor.sd == pytest.approx(0.01)
    # The margin is 10 % of FullFT's gain of 0.295; five seeds of SD 0.01 decide it (tost_power).
    needed = seeds_for_margin(0.0295, 0.01)
    assert seed_needs(sweep, search) == [
        f"With this noise (SD 0.010 a run) a margin of 0.029 needs {needed} report seeds an arm to "
        "be supported with 80 % probability if the true difference is 0; there are 3 (lora-r1 and "
        "lora-r8)."
    ]
    assert len(comparisons(sweep)) == 2


def test_without_a_noise_floor_no_number_of_seeds_is_named(tmp_path: Path) -> None:
    sweep = load(write_synthetic_experiment(tmp_path / "q", search_seeds=(0,)))

    assert seed_needs(sweep, search_summary(sweep)) == []


def test_mixed_versions_are_named_as_such(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q", git_commits=("aaa", "bbb"))

    found = load(path)
    assert "Commit: MIXED: aaa (27 runs), bbb (27 runs)" in provenance_lines(found)
    (path / "full" / "full-search-2e-05-0" / "provenance.json").unlink()
    assert "torch: 2.13.0" in provenance_lines(found)


def test_methods_name_the_variant_of_the_loss_by_arm(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    plan = json.loads((path / "plan.json").read_text())
    objective = plan["arms"]["lora-r8"]["config"]["objective"]
    objective["entropy_shaping"] = {"alpha": 0.4, "kappa": 2.0}
    objective["top_entropy_quantile"] = 0.2
    (path / "plan.json").write_text(json.dumps(plan))
    sweep = load(path)
    said = " ".join(methods(sweep, search_summary(sweep)))

    assert "; plain (full" in said
    assert (
        "advantages shaped by entropy (alpha 0.4), only the 20% of tokens with the highest entropy "
        "trained (lora-r8)." in said
    )


def test_each_objective_of_a_sweep_is_named_with_its_arms(tmp_path: Path) -> None:
    path = write_synthetic_experiment(tmp_path / "q")
    plan = json.loads((path / "plan.json").read_text())
    objective = plan["arms"]["lora-r8"]["config"]["objective"]
    for key in ("num_generations", "loss_type", "scale_rewards", "beta"):
        del objective[key]
    objective |= {"name": "sft", "prompts_per_step": 64}
    (path / "plan.json").write_text(json.dumps(plan))
    sweep = load(path)
    said = methods(sweep, search_summary(sweep))

    (supervised,) = [line for line in said if line.startswith("Objective of lora-r8: sft")]
    assert "200 AdamW steps of 64 solutions each" in supervised
    (policy,) = [line for line in said if line.startswith("Objective of full")]
    assert "8 prompts with 8 completions each" in policy and "unknown" not in policy
