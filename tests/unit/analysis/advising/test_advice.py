"""The advice: own data before rules, every step away from them stated, and what to paste."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.advising.advice import Advice, recommend
from analysis.advising.as_json import advice_json
from analysis.advising.own import nearest_arms, own_sweeps, sourced
from analysis.advising.printing import lines
from analysis.advising.seeds import sd_interval, seed_advice
from analysis.estimates.power import seeds_for_margin
from analysis.estimates.stats import PooledSd
from analysis.reading.load import load
from analysis.reading.sweep import Sweep
from analysis.simulate.draws import ArmTruth
from analysis.simulate.store import rank_arms, write_experiment
from study.compose import compose, split_sweeps
from tests.unit.analysis.comparing.side_by_side import arm, cut, minimized, sweep


@pytest.fixture(name="own", scope="module")
def _own(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    path = tmp_path_factory.mktemp("runs") / "mine"
    return load(write_experiment(path, rank_arms((1, 8), ratio=10)))


def mine(**options: Any) -> Sweep:
    return sweep("mine", {"full": arm("full"), "lora-r8": arm("lora-r8", 10)}, **options)


def test_without_sweeps_the_public_rl_sweep_decides() -> None:
    found = recommend([], "lora", family="qwen3", hidden_size=2560)
    assert found.rates.chosen.value == pytest.approx(4.1289e-5 * (2048 / 2560) ** 0.0775)
    assert [rule.value for rule in found.rates.published[2:]] == pytest.approx([4.9e-4], rel=0.01)
    assert (found.ranks.rank, found.seeds.search, found.seeds.report) == (32, 3, 5)
    assert found.rates.grid.spacing == 0.5
    printed = "\n".join(lines(found))
    assert "collapse from 2e-4 on, below this rule" in printed
    assert "No sweep of yours was given" in printed


def test_own_data_come_first_and_disagreement_is_said(own: Sweep) -> None:
    found = recommend([own], "lora", 8, family="llama")
    nearest, carried = found.rates.own[0]
    assert nearest.facts.name == "lora-r8" and carried is not None
    assert found.rates.chosen == carried
    assert carried.interval == nearest.rate.interval
    low, high = carried.interval or (0.0, 0.0)
    assert low < 10 * 10 ** (sum(ArmTruth().plateau(0.2)) / 2) < high
    assert nearest.ratio is not None and nearest.ratio.interval is not None
    assert nearest.ratio.interval[0] < 10 < nearest.ratio.interval[1]
    used = next(line for line in found.rates.disagreements if line.startswith("TRL"))
    assert "lies wholly below" in used and "your own data are preferred" in used
    assert not any("Schulman" in line for line in found.rates.disagreements)  # ten is inside


def test_a_ratio_that_excludes_ten_disagrees_with_the_paper() -> None:
    a = sweep("mine", {"full": arm("full"), "lora-r8": arm("lora-r8", 3)})
    found = recommend([a], "lora", 8)
    (line,) = (x for x in found.rates.disagreements if x.startswith("Schulman"))
    assert "10.0 (no interval), found for " in line and "wholly above the ratio 3.00 [" in line


def test_each_step_away_from_the_measured_arm_widens_the_range(own: Sweep) -> None:
    (own_sweep,) = own_sweeps([own])
    arms = {a.facts.name: a for a in nearest_arms([own_sweep], "lora", 8, 64)}
    assert list(arms) == ["lora-r8", "lora-r1"]
    measured = arms["lora-r8"].rate.interval
    assert measured is not None
    low, high = measured
    higher = sourced(arms["lora-r8"], 32, 64, None)
    assert higher is not None and higher.interval == pytest.approx((low, 2 * high))
    lower = sourced(arms["lora-r8"], 1, 64, None)
    assert lower is not None and lower.interval == pytest.approx((low / 2, high))
    wider = sourced(arms["lora-r8"], 8, 256, "llama")
    assert wider is not None and wider.interval == pytest.approx((low / 4, high))
    assert wider.value == pytest.approx(arms["lora-r8"].rate.point / 4**0.781)
    for found in (higher, lower, wider):
        assert "90 % interval over 3 seeds; widened from" in found.range_is


def test_one_seed_and_an_unknown_width_are_said() -> None:
    one = sweep("one", {"lora-r8": arm("lora-r8", 10, seeds=1)})
    found = recommend([one], "lora", 8, hidden_size=2048).rates.chosen
    assert found.interval == pytest.approx((found.value / 2, found.value * 2))
    assert "no interval (fewer than 3 search seeds); a factor of 2 each way" in found.range_is
    assert "does not state its hidden size, so it is not scaled" in found.range_is


def test_a_measured_arm_is_nearer_than_a_point_of_unknown_width(own: Sweep) -> None:
    one = sweep("one", {"lora-r8": arm("lora-r8", 10, seeds=1)})
    found = recommend([one, own], "lora", 8, hidden_size=128)
    assert [a.own.sweep.path.name for a, _ in found.rates.own][:1] == ["mine"]


def test_an_edge_is_a_bound_and_the_grid_looks_beyond_it() -> None:
    full = cut(arm("full"), 6)
    found = recommend([sweep("cut", {"full": full})], "full")
    assert found.rates.chosen.range_is.startswith("only a lower bound")
    assert found.rates.grid.rates[-1] > 10 * full.learning_rates[-1] / 2


def test_supervised_arms_are_listed_and_do_not_make_an_rl_grid() -> None:
    found = recommend([minimized(mine())], "lora", 8)
    assert found.rates.nearest is None and len(found.rates.own) == 1
    assert "Arms of supervised fine-tuning are listed" in found.notes[-1]


def test_a_sweep_without_the_method_falls_back_and_says_so() -> None:
    found = recommend([sweep("full-only", {"full": arm("full")})], "lora")
    assert found.rates.own == () and found.rates.nearest is None
    assert "Your sweeps have no arm of method lora." in list(lines(found))


def test_another_alpha_and_an_unfinished_sweep_are_noted() -> None:
    methods = {"lora-r8": {"lora_alpha": 64.0}}
    notes = recommend([mine(methods=methods, missing=1)], "lora", 8).notes
    assert any("is unfinished (53 of 54 runs)" in note for note in notes)
    finished = recommend([mine(methods=methods)], "lora", 8).notes
    assert any("ran at alpha 64, published rates are for 32" in note for note in finished)


def test_the_lowest_rank_shown_equal_is_advised(own: Sweep) -> None:
    found = recommend([own], "lora").ranks
    assert [(v.rank, v.verdict.verdict) for v in found.own] == [(1, "supported"), (8, "supported")]
    assert found.rank == 1
    assert recommend([own], "lora", 4).ranks.why == "the rank you asked for"
    without_full = recommend([sweep("alone", {"lora-r8": arm("lora-r8")})], "lora").ranks
    assert without_full.rank == 32
    assert without_full.why.startswith("no own sweep shows a rank equal to FullFT")


def test_interval_of_the_noise_is_that_of_chi_square() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(1000):
        sd = float(np.sqrt(stats.chi2.rvs(12, random_state=rng) / 12))
        low, high = sd_interval(PooledSd(sd, 12, 6))
        covered += low < 1.0 < high
    assert 0.87 < covered / 1000 < 0.93


def test_report_seeds_follow_from_the_noise_and_the_margin(own: Sweep) -> None:
    (own_sweep,) = own_sweeps([own])
    floor, curve = own_sweep.search.floor, own_sweep.search.curves["full"]
    assert floor is not None and curve.base is not None
    margin = max(0.02, 0.1 * (float(curve.means.max()) - curve.base))
    found = seed_advice(recommend([own], "lora").rates.grid, [own_sweep])
    assert found.report == seeds_for_margin(margin, floor.sd)
    assert f"within ±{margin:.3f} with 80 % power" in found.report_why


@pytest.mark.parametrize(("method", "rank"), [("full", None), ("lora", 8), ("lora", 16)])
def test_what_is_pasted_composes(own: Sweep, method: str, rank: int | None) -> None:
    for found in (recommend([own], method, rank), recommend([], method, rank, "llama", 4096)):
        config = compose(found.paste.experiment)
        assert config.experiment is not None
        assert set(config.space.learning_rate) == {"full", "lora"}
        assert set(found.rates.grid.rates) <= set(config.space.learning_rate[method])
        assert len(config.experiment.seeds.report) == found.seeds.report
        if method == "lora":
            assert f"lora-r{rank}" in config.experiment.arms
        fixed, swept = split_sweeps(found.paste.arm)
        assert len(swept["objective.learning_rate"]) == len(found.rates.grid.rates)
        assert compose(fixed).method.name == method


def test_the_model_of_the_own_sweep_is_pasted_where_it_is_the_asked_one(own: Sweep) -> None:
    assert "model=lab64" in recommend([own], "lora", 8).paste.arm
    assert "model.path=DIR" in recommend([own], "lora", 8, hidden_size=128).paste.arm


def numbers(value: Any) -> list[dict[str, Any]]:
    """Every object of a JSON tree that holds a number with or without an interval."""
    if isinstance(value, list):
        return [x for item in value for x in numbers(item)]
    if not isinstance(value, dict):
        return []
    own = [value] if {"value", "range_is"} <= set(value) or "point" in value else []
    return own + [x for item in value.values() for x in numbers(item)]


def test_json_has_a_range_or_a_reason_for_every_number(own: Sweep) -> None:
    found: Advice = recommend([own], "lora", 8, "qwen3", 64)
    tree = json.loads(advice_json(found))
    seen = numbers(tree)
    assert len(seen) >= 8
    for number in seen:
        if "point" in number:
            assert number["interval"] or number["reason"]
        else:
            assert number["range_is"] and number["source"]
            assert number["low"] is None or number["low"] <= number["value"] <= number["high"]
    assert math.isclose(tree["grid"]["spacing"], found.rates.grid.spacing)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"method": "dora"}, "--method must be one of full, lora, got 'dora'"),
        ({"method": "full", "rank": 8}, "--rank is read with --method lora only, got 8"),
        ({"method": "lora", "rank": 0}, "--rank >= 1 must hold, got 0"),
        ({"method": "lora", "hidden_size": 0}, "--hidden-size >= 1 must hold, got 0"),
        ({"method": "lora", "family": "gemma"}, "known are llama, qwen3"),
    ],
)
def test_bad_input_is_one_sentence(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        recommend([], **arguments)


def test_the_path_of_a_sweep_is_its_label(own: Sweep) -> None:
    assert str(Path(own.path)) in recommend([own], "lora").rates.chosen.source
