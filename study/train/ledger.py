"""What every engine keeps of a run: its counts, its health, its evaluations, its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from study.config import GrpoObjective
from study.plan.flops import Sequences, forward_flops, scoring_passes, train_flops
from study.train.checkpoint import kept_bytes
from study.train.engine import Evaluation, Outcome, RunSpec, Sink
from study.train.health import HealthMonitor, Pruned, StepHealth
from study.train.rewards import Scorer
from study.train.score import run_scores
from study.train.tally import BatchSource, Tally, named_metrics, peak_memory

ASK_EVERY = 5
"""Steps between two questions to early stopping: what decides may arrive after an evaluation, from
runs that another process trains."""


class Ledger:
    """The books of one run.

    Attributes:
        evaluations: Held-out evaluations so far, the one at step 0 first.
    """

    def __init__(self, spec: RunSpec, sink: Sink, scorer: Scorer, source: BatchSource) -> None:
        """Opens the books.

        Args:
            spec: The run.
            sink: Where metrics and evaluations go.
            scorer: What scores its completions; its errors are counted.
            source: What knows the current batch.
        """
        objective = spec.config.objective
        self.evaluations: list[Evaluation] = []
        self._spec, self._sink, self._scorer, self._source = spec, sink, scorer, source
        self._grpo = objective if isinstance(objective, GrpoObjective) else None
        self._tally = Tally(self._grpo.num_iterations if self._grpo else 1)
        self._health = HealthMonitor(
            min(self._grpo.no_signal_steps, objective.steps) if self._grpo else None
        )
        self._clipped_ratio = 0.0
        self._evaluated = spec.config.evaluation.steps(objective.steps)

    def after_step(self, step: int, logs: Mapping[str, Any], *, weights_finite: bool) -> None:
        """Counts, logs and judges a step that just ended.

        Args:
            step: Optimizer steps done.
            logs: Its metrics under TRL's names.
            weights_finite: Whether every trained weight is finite after it.

        Raises:
            RunEnded: If the run ends with this step.
        """
        batch = self._source.batch
        assert batch is not None, "a step trains on a batch"
        metrics = named_metrics(logs)
        if self._tally.add(batch) and batch.completions:
            metrics["train/correct"] = batch.correct / batch.completions
            metrics["train/reward_bits"] = batch.bits
            self._clipped_ratio = float(logs["completions/clipped_ratio"])
        metrics["train/prompts_seen"] = float(self._tally.prompts)
        if self.evaluation_due(step):
            metrics["train/flops"] = self._train_flops() + self._rollout_flops()
        self._sink.log(self._spec.run_id, step, metrics)
        self._health.observe(
            StepHealth(
                step=step,
                loss=float(logs["loss"]),
                grad_norm=float(logs["grad_norm"]),
                weights_finite=weights_finite,
                unequal_groups=batch.unequal_groups,
                all_correct=0 < batch.completions == batch.correct,
                clipped_ratio=self._clipped_ratio,
            )
        )
        if step % ASK_EVERY == 0 and not self.evaluation_due(step):
            self.stop_early(step)

    def evaluation_due(self, step: int) -> bool:
        """Whether the run is evaluated after so many steps."""
        return step in self._evaluated

    def evaluated(self, evaluation: Evaluation) -> None:
        """Takes in an evaluation."""
        self.evaluations.append(evaluation)
        self._sink.evaluation(self._spec.run_id, evaluation)

    def stop_early(self, step: int) -> None:
        """Raises `Pruned` if early stopping ends the run; a run at its last step has ended."""
        if step < self._spec.config.objective.steps:
            reason = self._sink.stops_early(self._spec.run_id, step)
            if reason is not None:
                raise Pruned(reason)

    def outcome(
        self, status: str, reason: str, *, seconds: float, dtypes: dict[str, str], **probes: Any
    ) -> Outcome:
        """Closes the books.

        Args:
            status: Status of the run's record.
            reason: Why it ended, a clause.
            seconds: What the run took of the process's time.
            dtypes: Precision of base, adapter and optimizer state.
            **probes: Further measurements for the record.
        """
        scores = run_scores(status, self.evaluations, self._spec.config.evaluation.final_window)
        return Outcome(
            run_id=self._spec.run_id,
            status=status,
            status_reason=reason,
            flags=self._health.flags(self._scorer.errors),
            score_final=scores.final,
            score_best=scores.best,
            score_base=scores.base,
            score_greedy=scores.greedy,
            steps_done=self._tally.steps,
            episodes=self._tally.episodes,
            train_tokens=self._tally.trained.tokens,
            generated_tokens=self._source.generated_tokens,
            train_flops=self._train_flops(),
            rollout_flops=self._rollout_flops(),
            wall_time_s=seconds,
            peak_memory_bytes=peak_memory(),
            dtypes=dtypes,
            probes={**self._probes(), **probes},
        )

    def _train_flops(self) -> float:
        """FLOPs of the steps so far, forward passes that only score a batch included."""
        spec, grpo, tally = self._spec, self._grpo, self._tally
        flops = train_flops(spec.config.method, spec.target_modules, spec.model, tally.trained)
        if grpo is not None:
            scored = tally.read * scoring_passes(grpo.beta, grpo.num_iterations)
            flops += forward_flops(spec.model, scored)
        return flops

    def _rollout_flops(self) -> float:
        return forward_flops(self._spec.model, self._tally.sampled)

    def _probes(self) -> dict[str, Any]:
        """What the records have no fields for: what it cost besides training, and rewards."""
        work = sum((evaluation.work for evaluation in self.evaluations), Sequences())
        weights = kept_bytes(self._spec.directory)
        return {
            **({"weights_bytes": weights} if weights else {}),
            "evaluation_flops": forward_flops(self._spec.model, work),
            **(self._rewards() if self._grpo else {}),
        }

    def _rewards(self) -> dict[str, Any]:
        tally = self._tally
        return {
            "reward_bits": tally.bits,
            "reward_values": len(tally.rewards),
            "groups": tally.prompts,
            "zero_variance_groups": tally.prompts - tally.unequal_groups,
        }
