"""The engine `trl`: one run per process through TRL's GRPOTrainer."""

import gc
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from study.config import EntropyShaping
from study.tasks.base import Problem
from study.tasks.loading import load_task
from study.train.arguments import grpo_arguments
from study.train.checkpoint import Keeper
from study.train.engine import NextRun, Outcome, RunSpec, Sink
from study.train.evaluate import Evaluator
from study.train.health import (
    Diverged,
    RunEnded,
    not_finite_before_training,
    sampling_divergence,
)
from study.train.ledger import Ledger
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
from study.train.models import check_revision, load_model, load_tokenizer
from study.train.quiet import quiet_libraries
from study.train.rewards import Scorer, TaskReward
from study.train.shaping import shaped_advantages


def train(runs: Sequence[RunSpec], sink: Sink, next_run: NextRun) -> None:
    """Trains one run to its outcome; see :mod:`study.train.engine`. `next_run` is never asked.

    Raises:
        ValueError: If the model or task is not usable, the model has changed since it was
            described, or not exactly one run is given.
        RuntimeError: If the method did not train what it should, or the scorer keeps failing.
    """
    if len(runs) != 1:
        raise ValueError(f"the trl engine trains exactly one run at a time, got {len(runs)}.")
    gc.freeze()  # the libraries' objects stay for good: no collection need visit them
    with quiet_libraries():
        sink.ended(_Session(runs[0], sink).run())


class _Session:
    """One run, from its specification to its outcome."""

    def __init__(self, spec: RunSpec, sink: Sink) -> None:
        self.started = time.perf_counter()
        self.spec, self.sink, self.config = spec, sink, spec.config
        check_revision(spec.config.model, spec.model.model_revision)
        self.tokenizer = load_tokenizer(self.config.model)
        model = load_model(self.config.model)
        prepare_model(model, self.config.method)
        self._load_task(model)
        self.ledger = Ledger(spec, sink, self.scorer, self.reward)
        self.trainer = self._build_trainer(model)
        self.keeper = Keeper(
            self.config, spec.directory, self.tokenizer, lambda: nullcontext(self.trainer.model)
        )
        check_trainable(trained(self.trainer.model), spec.trainable_params)
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
        held_out = task.problems(self.spec.held_out_role, self.config.evaluation.eval_prompts)
        self.evaluator = Evaluator(
            self.config,
            held_out,
            self.scorer,
            model,
            self.tokenizer,
            alive=lambda: self.sink.alive(self.spec.run_id),
        )

    def _build_trainer(self, model: Any) -> Any:
        trainer: Any = _Trainer(
            entropy_shaping=self.config.objective.entropy_shaping,
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
        check_trained(before, after, trained(self.trainer.model), must_have_moved=completed)
        if completed:
            self.keeper.completed()
        return self.ledger.outcome(
            status,
            reason,
            seconds=time.perf_counter() - self.started,
            dtypes=precisions(self.trainer.model, self.config.method, self.trainer.optimizer),
            weights_before=before.trained,
            weights_after=after.trained,
        )

    def _train(self) -> tuple[str, str]:
        """Returns the status of the run and the reason for it."""
        try:
            self.trainer.train()
        except (RunEnded, RuntimeError) as error:
            end = error if isinstance(error, RunEnded) else sampling_divergence(error)
            if end is None:
                raise
            if not self.ledger.evaluations:
                raise not_finite_before_training(self.config) from error
            return end.status, end.reason
        return "completed", ""

    def evaluate(self, model: Any, step: int) -> None:
        """Evaluates the model after `step` optimizer steps.

        Raises:
            Pruned: If early stopping ends the run.
        """
        evaluation = self.evaluator(model, step, len(self.ledger.evaluations))
        self.ledger.evaluated(evaluation)
        if step > 0:
            self.keeper.evaluated(evaluation.accuracy)
        self.ledger.stop_early(step)

    def after_step(self, model: Any, step: int, logs: Mapping[str, Any]) -> None:
        """Enters the step that just ended in the books and, where due, evaluates.

        Raises:
            RunEnded: If the run ends with this step.
        """
        self.ledger.after_step(step, logs, weights_finite=all_finite(self.weights))
        if self.ledger.evaluation_due(step):
            self.evaluate(model, step)


class _Trainer(GRPOTrainer):  # type: ignore[misc]  # the library is untyped
    """TRL's trainer, with advantages that may be shaped by entropy.

    TRL's loss takes advantages [rows, tokens] from subclasses, but reads them only after the pass
    that computes the entropies: they are put in its place between the two.
    """

    def __init__(self, *, entropy_shaping: EntropyShaping, **arguments: Any) -> None:
        self._entropy_shaping = entropy_shaping
        self._loss_inputs: dict[str, Any] | None = None
        super().__init__(**arguments)

    def _compute_loss(self, model: Any, inputs: Mapping[str, Any]) -> torch.Tensor:
        self._loss_inputs = dict(inputs)  # the batch itself may serve further steps
        try:
            loss: torch.Tensor = super()._compute_loss(model, self._loss_inputs)
        finally:
            self._loss_inputs = None
        return loss

    def _get_per_token_logps_and_entropies(self, *args: Any, **options: Any) -> Any:
        found = super()._get_per_token_logps_and_entropies(*args, **options)
        shaping, inputs = self._entropy_shaping, self._loss_inputs
        if shaping.is_on and inputs is not None:
            _, entropies, _ = found
            rows = inputs["advantages"].unsqueeze(1)
            inputs["advantages"] = shaped_advantages(rows, entropies, shaping.alpha, shaping.kappa)
        return found


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
