from __future__ import annotations

from statistics import fmean

import pytest

from analysis.estimates.ablation import ALL, GAIN, LOSS, UNDECIDED, ablation
from analysis.reading.ablated import expected_runs
from study.config import AblateConfig, SeedsConfig
from study.plan.ablate import grow
from study.plan.experiment import Plan, PlannedRun
from study.plan.select import Selection
from study.records.record import Record
from tests.unit.analysis.ablated_sweeps import finished, gaussian, sweep_of
from tests.unit.analysis.figures.drawn_sweeps import ranks
from tests.unit.analysis.figures.drawn_sweeps import sweep_of as drawn_sweep
from tests.unit.plan.ablations import FACTORS, linear, no_noise, planned, record, scored

SEEDS = SeedsConfig(search=[0, 1, 2], report=[100, 101, 102, 103, 104])
ALONE = AblateConfig(source="default", target="tuned", path=False)


def test_the_gains_of_a_linear_function_are_its_coefficients() -> None:
    found = ablation(finished(linear, no_noise))
    assert found is not None
    assert [change.factor for change in found.changes] == FACTORS
    assert [change.gain and change.gain.point for change in found.changes] == pytest.approx(
        [10, 1, 0.1]
    )
    assert [change.alone for change in found.changes] == pytest.approx([10, 1, 0.1])
    assert found.whole.factor == ALL
    assert found.whole.gain is not None
    assert found.whole.gain.point == pytest.approx(11.1)
    assert found.finished


def test_equal_scores_have_no_spread_and_decide_nothing() -> None:
    found = ablation(finished(linear, no_noise))
    assert found is not None
    assert {change.verdict for change in found.changes} == {UNDECIDED}
    assert all(change.gain and change.gain.interval is None for change in found.changes)


def test_large_effects_are_gains_and_what_drowns_in_noise_is_undecided() -> None:
    found = ablation(finished(linear, gaussian(0.5), planned(seeds=SEEDS)))
    assert found is not None
    by_factor = {change.factor: change for change in found.changes}
    assert by_factor[FACTORS[0]].verdict == GAIN
    assert by_factor[FACTORS[2]].verdict == UNDECIDED
    assert by_factor[FACTORS[2]].gain is not None
    low, high = by_factor[FACTORS[2]].gain.interval or (0, 0)
    assert low < 0 < high
    assert found.changes[0].factor == FACTORS[0] and not found.changes[0].order_open


def test_a_step_is_paired_by_seed() -> None:
    """What a seed adds to every arm alike cancels: only 0.01 is left of a spread of 100."""
    own = gaussian(0.01)

    def shared(run: PlannedRun) -> float:
        return 100.0 * (run.seed % 3) + own(run)

    found = ablation(finished(linear, shared, planned(seeds=SEEDS)))
    assert found is not None
    first = found.changes[0].gain
    assert first is not None and first.interval is not None
    assert 9.9 < first.interval[0] < 10.1
    assert first.n == 5


def test_holm_corrects_over_the_changes() -> None:
    """By hand: differences 1, 2, 3 over 3 seeds have t = 2 sqrt(3) and p = 0.0742 at 2 df."""
    shifts = {100: -1.0, 101: 0.0, 102: 1.0}

    def steps(run: PlannedRun) -> float:
        """The first change gains 1, 2, 3 over the seeds; the later ones nothing but noise."""
        size = len(run.arm.split(".")) - 1 if run.arm != "tuned" else 3
        rising = 2.0 + shifts.get(run.seed, 0.0) if size else 0.0
        noise = {2: 0.3, 3: -0.1}.get(size, 0.0) * (shifts.get(run.seed, 0.0) ** 2)
        return rising + noise

    found = ablation(finished(lambda a, b, c: 0.0, steps))
    assert found is not None
    gains = [change.gain for change in found.changes]
    assert gains[0] is not None
    assert gains[0].point == 2
    # t(0.95, 2 df) = 2.919986, standard error 1 / sqrt(3)
    assert gains[0].interval == pytest.approx((2 - 2.919986 / 3**0.5, 2 + 2.919986 / 3**0.5))
    assert found.changes[0].verdict == UNDECIDED  # 3 x 0.074 > 0.1, though the interval is above 0
    assert found.whole.verdict == GAIN  # one difference, uncorrected


def test_factors_that_only_help_together_show_as_a_loss_and_a_larger_gain() -> None:
    def exclusive(a: int, b: int, c: int) -> float:
        return -10.0 * (a ^ b) + 5.0 * (a & b) + c

    found = ablation(finished(exclusive, gaussian(0.01), planned(seeds=SEEDS)))
    assert found is not None
    assert [change.verdict for change in found.changes] == [GAIN, LOSS, GAIN]
    assert found.changes[0].factor == FACTORS[2]
    last = found.changes[2]
    assert last.gain is not None and last.gain.point == pytest.approx(15, abs=0.1)
    assert last.alone == pytest.approx(-10, abs=0.1)


def test_an_order_that_the_search_seeds_cannot_tell_is_open() -> None:
    def first_order_open(b: float) -> float:
        """Share of 20 sweeps in which the lead of a over b, c in the first round was open."""
        shares = []
        for seed in range(20):
            noise = gaussian(0.5, seed)
            plan = planned(seeds=SEEDS)
            found = ablation(finished(lambda x, y, z: 10 * x + b * y, noise, plan))
            assert found is not None
            shares.append(found.changes[0].order_open)
        return fmean(shares)

    assert first_order_open(10.0) > 0.6
    assert first_order_open(0.0) == 0.0


def test_changing_each_factor_alone_reports_every_one_of_them() -> None:
    found = ablation(finished(linear, gaussian(0.01), planned(ablate=ALONE, seeds=SEEDS)))
    assert found is not None
    assert not found.path and found.finished
    assert [change.before for change in found.changes] == ["default"] * 3
    assert [change.gain and change.gain.point for change in found.changes] == pytest.approx(
        [10, 1, 0.1], abs=0.05
    )
    assert [change.rival for change in found.changes] == [""] * 3


def test_the_gain_is_estimated_on_seeds_that_did_not_choose() -> None:
    """All factors do nothing; the first taken is the luckiest on search seeds, not on report's."""
    flattered, fair = [], []
    for seed in range(40):
        sweep = finished(lambda a, b, c: 0.0, gaussian(1.0, seed), planned(seeds=SEEDS))
        found = ablation(sweep)
        assert found is not None and found.changes[0].gain is not None
        assert found.changes[0].alone is not None
        flattered.append(found.changes[0].alone)
        fair.append(found.changes[0].gain.point)
    # The best of three means of 3 lies 0.85 / sqrt(3) = 0.49 above their mean.
    assert fmean(flattered) == pytest.approx(0.49, abs=0.3)
    assert abs(fmean(fair)) < 3 * (2 / 5 / 40) ** 0.5


def test_values_of_the_factors_are_told() -> None:
    found = ablation(finished(linear, no_noise))
    assert found is not None
    assert [change.values for change in found.changes] == [(1, 2), (3, 6), (4, 8)]


def test_an_unfinished_path_shows_what_it_has() -> None:
    plan = planned()
    found = ablation(sweep_of(plan, {}, {}))
    assert found is not None
    assert (found.changes, found.whole.gain, found.finished) == ((), None, False)
    records = {run.run_id: record(plan, run, scored(linear)(plan, run)) for run in plan.runs}
    plan, fresh = grow(plan, records, {})
    selections = {choice.arm: choice for choice in fresh}
    found = ablation(sweep_of(plan, records, selections))
    assert found is not None
    assert [change.factor for change in found.changes] == FACTORS[:1]
    assert found.changes[0].gain is None
    assert found.changes[0].alone == 10


def test_other_experiments_have_no_ablation() -> None:
    assert ablation(drawn_sweep(ranks(1, 8))) is None


def grown(plan: Plan) -> list[tuple[Plan, dict[str, Record], dict[str, Selection]]]:
    """The experiment after each of its rounds."""
    records: dict[str, Record] = {}
    chosen: dict[str, Selection] = {}
    states = [(plan, dict(records), dict(chosen))]
    while any(run.run_id not in records for run in plan.runs):
        for run in plan.runs:
            records.setdefault(run.run_id, record(plan, run, scored(linear)(plan, run)))
        plan, fresh = grow(plan, records, chosen)
        chosen |= {choice.arm: choice for choice in fresh}
        states.append((plan, dict(records), dict(chosen)))
    return states


@pytest.mark.parametrize("ablate", [ALONE, None])
def test_the_runs_to_expect_are_the_same_in_every_round(ablate: AblateConfig | None) -> None:
    plan = planned(rates=(1e-4, 1e-3), **({} if ablate is None else {"ablate": ablate}))
    states = grown(plan)
    total = len(states[-1][0].runs)
    assert len(states) > 2
    for state in states:
        assert expected_runs(sweep_of(*state), set()) == total
    assert sweep_of(*states[-1]).complete
    assert not any(sweep_of(*state).complete for state in states[:-1])


def test_a_path_without_a_way_on_expects_nothing_more() -> None:
    plan = planned()
    singles = list(plan.arms)[2:]
    records = {
        run.run_id: record(plan, run, None if run.arm in singles else 1.0) for run in plan.runs
    }
    plan, fresh = grow(plan, records, {})
    selections = {choice.arm: choice for choice in fresh}
    sweep = sweep_of(plan, records, selections)
    assert sweep.expected == len(plan.runs)
