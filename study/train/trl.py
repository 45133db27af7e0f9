"""The engine `trl`: one run per process through TRL's GRPOTrainer."""

import gc
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from study.tasks.base import Problem, Role
from study.tasks.loading import load_task
from study.train.arguments import grpo_arguments
from study.train.checkpoint import Keeper
from study.train.engine import Evaluation, NextRun, Outcome, RunSpec, Sink
from study.train.evaluate import Evaluator
from study.train.health import Diverged, HealthMonitor, RunEnded, StepHealth, sampling_divergence
from study.train.methods import (
    adapter_config,
    all_finite,
    check_trainable,
    check_trained,
    fingerprint,
    precisions,
    prepare_model,
    trained,
)
from study.train.models import load_model, load_tokenizer, model_directory, model_revision
from study.train.quiet import quiet_libraries
from study.train.rewards import Scorer, TaskReward
from study.train.score import run_scores
from study.train.tally import Tally, named_metrics, peak_memory


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> list[Outcome]:
    """Trains one run to its outcome; see :mod:`study.train.engine`.

    Raises:
        ValueError: If the model or task is not usable, the model has changed since it was
            described, or not exactly one run is given.
        RuntimeError: If the method did not train what it should, or the scorer keeps failing.
    """
    if len(runs) != 1:
        raise ValueError(f"the trl engine trains exactly one run at a time, got {len(runs)}.")
    gc.freeze()  # the libraries' objects stay for good: no collection need visit them
    with quiet_libraries():
        return [_Session(runs[0], sink).run()]


class _Session:
    """One run, from its specification to its outcome."""

    def __init__(self, spec: RunSpec, sink: Sink) -> None:
        self.started = time.perf_counter()
        self.spec, self.sink, self.config = spec, sink, spec.config
        _check_revision(spec)
        self.tokenizer = load_tokenizer(self.config.model)
        model = load_model(self.config.model)
        prepare_model(model, self.config.method)
        self.clipped_ratio = 0.0
        self.evaluations: list[Evaluation] = []
        self.tally = Tally(self.config.objective.num_iterations)
        objective = self.config.objective
        self.health = HealthMonitor(min(objective.no_signal_steps, objective.steps))
        self.keeper = Keeper(self.config, spec.directory, self.tokenizer)
        self._load_task(model)
        self.trainer = self._build_trainer(model)
        check_trainable(self.trainer.model, spec.trainable_params)
        self.weights = [weight.detach() for _, weight in trained(self.trainer.model)]

    def _load_task(self, model: Any) -> None:
        task = load_task(self.config.task)
        self.scorer = Scorer(task)
        self.problems = task.problems("train", self.config.task.train_prompts)
        encoded = self.tokenizer([problem.prompt for problem in self.problems])["input_ids"]
        self.reward = TaskReward(
            self.scorer,
            self.problems,
            prompt_lengths=[len(ids) for ids in encoded],
            num_generations=self.config.objective.num_generations,
        )
        role: Role = "report" if self.spec.eval_role == "report" else "eval"
        held_out = task.problems(role, self.config.evaluation.eval_prompts)
        self.evaluator = Evaluator(
            self.config,
            held_out,
            self.scorer,
            model,
            self.tokenizer,
            alive=lambda: self.sink.alive(self.spec.run_id),
        )

    def _build_trainer(self, model: Any) -> Any:
        trainer: Any = GRPOTrainer(
            model=model,
            reward_funcs=[self.reward],
            args=grpo_arguments(self.config, str(self.spec.directory)),
            train_dataset=_prompts(self.problems),
            processing_class=self.tokenizer,
            peft_config=adapter_config(self.config.method, self.spec.target_modules),
            callbacks=[_Observer(self)],
        )
        trainer.remove_callback(PrinterCallback)
        if torch.cuda.is_available():
            trainer.model.get_output_embeddings().register_forward_hook(_refuse_non_finite)
        return trainer

    def run(self) -> Outcome:
        """Trains, checks what was trained, and keeps the weights."""
        before = fingerprint(self.trainer.model)
        status, reason = self._train()
        after = fingerprint(self.trainer.model)
        completed = status == "completed"
        check_trained(before, after, self.trainer.model, must_have_moved=completed)
        if completed:
            self.keeper.completed(self.trainer.model)
        return self._outcome(
            status, reason, {"weights_before": before.trained, "weights_after": after.trained}
        )

    def _train(self) -> tuple[str, str]:
        """Returns the status of the run and the reason for it."""
        try:
            self.trainer.train()
        except (RunEnded, RuntimeError) as error:
            end = error if isinstance(error, RunEnded) else sampling_divergence(error)
            if end is None:
                raise
            if not self.evaluations:
                raise ValueError(
                    f"model {self.config.model.name} must have finite sampling probabilities "
                    f"before training, at temperature {self.config.objective.temperature}."
                ) from error
            return end.status, end.reason
        return "completed", ""

    def evaluate(self, model: Any, step: int) -> None:
        """Evaluates the model after `step` optimizer steps."""
        evaluation = self.evaluator(model, step, len(self.evaluations))
        self.evaluations.append(evaluation)
        self.sink.evaluation(self.spec.run_id, evaluation)
        if step > 0:
            self.keeper.evaluated(model, evaluation.accuracy)

    def after_step(self, model: Any, step: int, logs: Mapping[str, Any]) -> None:
        """Counts, logs, judges and, where due, evaluates the step that just ended.

        Raises:
            RunEnded: If the run ends with this step.
        """
        batch = self.reward.batch
        assert batch is not None, "a step trains on a scored batch"
        metrics = named_metrics(logs)
        if self.tally.add(batch):
            metrics["train/correct"] = batch.correct / batch.completions
            self.clipped_ratio = float(logs["completions/clipped_ratio"])
        metrics["train/prompts_seen"] = float(self.tally.prompts)
        self.sink.log(self.spec.run_id, step, metrics)
        self.health.observe(
            StepHealth(
                step=step,
                loss=float(logs["loss"]),
                grad_norm=float(logs["grad_norm"]),
                weights_finite=all_finite(self.weights),
                unequal_groups=batch.unequal_groups,
                all_correct=batch.correct == batch.completions,
                clipped_ratio=self.clipped_ratio,
            )
        )
        if step in self.config.evaluation.steps(self.config.objective.steps):
            self.evaluate(model, step)

    def _outcome(self, status: str, reason: str, probes: dict[str, Any]) -> Outcome:
        scores = run_scores(status, self.evaluations, self.config.evaluation.final_window)
        model, optimizer = self.trainer.model, self.trainer.optimizer
        return Outcome(
            run_id=self.spec.run_id,
            status=status,
            status_reason=reason,
            flags=self.health.flags(self.scorer.errors),
            score_final=scores.final,
            score_best=scores.best,
            score_base=scores.base,
            score_greedy=scores.greedy,
            steps_done=self.tally.steps,
            episodes=self.tally.episodes,
            train_tokens=self.tally.train_tokens,
            generated_tokens=self.reward.generated_tokens,
            wall_time_s=time.perf_counter() - self.started,
            peak_memory_bytes=peak_memory(),
            dtypes=precisions(model, self.config.method, optimizer),
            probes=probes,
        )


class _Observer(TrainerCallback):  # type: ignore[misc]  # the library is untyped
    """Hands the trainer's events to the session; what the session raises ends the training."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._session.evaluate(kwargs["model"], step=0)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        logs = kwargs["logs"]
        if "loss" in logs:  # the trainer's last log line sums up the run and is no step
            self._session.after_step(kwargs["model"], state.global_step, logs)


def _check_revision(spec: RunSpec) -> None:
    revision = model_revision(model_directory(spec.config.model))
    if revision != spec.model.model_revision:
        raise ValueError(
            f"model {spec.config.model.name} has changed since the run was planned: revision "
            f"{spec.model.model_revision} expected, got {revision}."
        )


def _prompts(problems: Sequence[Problem]) -> Dataset:
    """The training set; the reward finds a problem by its index."""
    return Dataset.from_dict(
        {
            "prompt": [problem.prompt for problem in problems],
            "problem": list(range(len(problems))),
        }
    )


def _refuse_non_finite(module: Any, inputs: Any, logits: torch.Tensor) -> None:
    """Ends the run before CUDA's sampler meets NaN: its assertion would poison the process."""
    if not torch.is_grad_enabled() and not torch.isfinite(logits.amax()):
        raise Diverged("sampling probabilities are not finite")
