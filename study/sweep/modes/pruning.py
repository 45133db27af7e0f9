"""Early stopping: which learning rates of an arm are not worth more steps.

Successive halving (Jamieson and Talwalkar 2016, arXiv:1502.07943) over learning rates instead of
runs: a rate is judged by its mean over search seeds and stopped with all its seeds, so that no
rate is ever chosen by the seeds that happened to survive.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import optuna
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, TrialState

from study.config import EarlyStoppingConfig

RUNG_FACTOR = 2
"""Each rung lies at so many times the step of the one before."""
WORST_ACCURACY = 0.0
"""What a diverged run counts with, at every rung."""


class RatePruner(BasePruner):
    """Stops learning rates by rank at each rung; see :class:`~study.config.EarlyStoppingConfig`.

    Expects one Optuna study per arm and phase, and one trial per run and try with the parameter
    ``learning_rate``, the user attributes ``run_id``, ``seed``, ``phase`` and, once it has ended,
    ``status``; held-out accuracies are intermediate values by optimizer step.

    A rung is decided on the seeds that are under way at every rate still in question, and only
    when all of their runs have reached it: a seed with a run that still waits for a worker, or
    whose attempt failed, neither holds the decision up nor counts. Who asks first thus changes
    nothing; a run that asks too early goes on and asks again after its next evaluation. A rate that
    was stopped on one seed is stopped on all, also on seeds that start later. Report runs are never
    stopped, and at least one rate always goes on.
    """

    def __init__(self, settings: EarlyStoppingConfig, rates: Iterable[float] = ()) -> None:
        """Builds the pruner.

        Args:
            settings: When to stop what.
            rates: Learning rates of the arm: those that no worker has begun are in question too.
        """
        self._settings = settings
        self._rates = tuple(rates)

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the run of ``trial`` stops now."""
        return self.reason(study, trial) is not None

    def reason(self, study: optuna.Study, trial: FrozenTrial) -> str | None:
        """Why the run of ``trial`` stops now, in a clause for its record; None if it goes on."""
        if trial.user_attrs["phase"] != "search":
            return None
        grid = _grid(study.get_trials(deepcopy=False), self._rates)
        return self._stopped(grid).get(trial.params["learning_rate"])

    def _stopped(self, grid: _Grid) -> dict[float, str]:
        """Reason by learning rate, for the rates that are out."""
        stopped = {
            rate: reason for rate, seeds in grid.items() if (reason := _stopped_before(rate, seeds))
        }
        contenders = [rate for rate in grid if rate not in stopped]
        step, places = self._settings.grace_steps, len(grid)
        last = _last_step(grid)
        while step <= last:
            places = self._settings.places(places)
            if len(contenders) > places:
                ranking = self._ranking(grid, contenders, step)
                if ranking is None:
                    break
                stopped |= ranking.reasons(places)
                contenders = ranking.rates[:places]
            step *= RUNG_FACTOR
        return stopped

    def _ranking(self, grid: _Grid, rates: list[float], step: int) -> _Ranking | None:
        """The rates by mean accuracy at a rung (ties: the lower first); None if undecided."""
        seeds = {seed for rate in rates for seed in grid[rate]}
        counted = [s for s in seeds if all(_under_way(grid[r].get(s), step) for r in rates)]
        cells = {rate: [grid[rate][seed] for seed in counted] for rate in rates}
        window = self._settings.window
        means: dict[float, float] = {}
        for rate in rates:
            values = [cell.accuracy(step, window) for cell in cells[rate]]
            known = [value for value in values if value is not None]
            if not known or len(known) < len(values):
                return None
            means[rate] = statistics.fmean(known)
        ordered = sorted(rates, key=lambda rate: (-means[rate], rate))
        return _Ranking(rates=ordered, means=means, step=step, n_seeds=len(counted))


@dataclass(frozen=True, kw_only=True)
class _Ranking:
    """The order of an arm's learning rates at one rung."""

    rates: list[float]
    """Best first."""
    means: dict[float, float]
    step: int
    n_seeds: int

    def reasons(self, places: int) -> dict[float, str]:
        """What to say of each rate that does not get one of the ``places``."""
        last = self.means[self.rates[places - 1]]
        return {
            rate: (
                f"learning rate {rate:g} is number {place} of {len(self.rates)} at step "
                f"{self.step}: accuracy {self.means[rate]:.3f}, the last kept has {last:.3f} "
                f"(mean over {self.n_seeds} seed{'s' if self.n_seeds > 1 else ''})"
            )
            for place, rate in enumerate(self.rates[places:], start=places + 1)
        }


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One learning rate with one seed: the tries at a run, in their order."""

    tries: list[FrozenTrial]

    @property
    def latest(self) -> FrozenTrial:
        """The try that counts; earlier ones failed."""
        return self.tries[-1]

    def accuracy(self, step: int, window: int) -> float | None:
        """Smoothed accuracy at the first evaluation from ``step`` on; None until it was reached.

        What an earlier try reported there stands: the evaluations of a run depend on its seed
        alone.
        """
        if self.latest.user_attrs.get("status") == "diverged":
            return WORST_ACCURACY
        for trial in reversed(self.tries):
            made = sorted(s for s in trial.intermediate_values if s > 0)
            reached = next((i for i, s in enumerate(made) if s >= step), None)
            if reached is not None:
                judged = made[max(0, reached + 1 - window) : reached + 1]
                return statistics.fmean(trial.intermediate_values[s] for s in judged)
        return None


_Grid = Mapping[float, Mapping[int, _Cell]]
"""Cells by learning rate (ascending) and seed."""


def _grid(trials: Iterable[FrozenTrial], rates: Iterable[float]) -> _Grid:
    cells: dict[float, dict[int, _Cell]] = {rate: {} for rate in rates}
    for trial in sorted(trials, key=lambda t: t.number):
        seeds = cells.setdefault(trial.params["learning_rate"], {})
        seeds.setdefault(trial.user_attrs["seed"], _Cell(tries=[])).tries.append(trial)
    return dict(sorted(cells.items()))


def _under_way(cell: _Cell | None, step: int) -> bool:
    """Whether a cell has reached ``step`` or is on its way there."""
    if cell is None:
        return False
    return cell.latest.state is TrialState.RUNNING or cell.accuracy(step, window=1) is not None


def _stopped_before(rate: float, seeds: Mapping[int, _Cell]) -> str | None:
    """The reason that a run of the rate was stopped with, if one was."""
    for cell in seeds.values():
        for trial in cell.tries:
            if trial.user_attrs.get("status") == "pruned":
                other = f"learning rate {rate:g} was stopped on seed {trial.user_attrs['seed']}"
                return str(trial.user_attrs.get("status_reason") or other)
    return None


def _last_step(grid: _Grid) -> int:
    """The latest step that any run reported; 0 before the first report."""
    tries = (t for seeds in grid.values() for cell in seeds.values() for t in cell.tries)
    return max((max(t.intermediate_values, default=0) for t in tries), default=0)
