"""A run of reinforcement learning through TRL's GRPOTrainer."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOTrainer

from study.config import EntropyShaping, GrpoObjective, RunConfig
from study.tasks.base import Problem
from study.train.health import Diverged
from study.train.methods import adapter_config
from study.train.rewards import Scorer, TaskReward
from study.train.shaping import shaped_advantages
from study.train.trl.arguments import grpo_arguments
from study.train.trl.session import Session


class GrpoSession(Session):
    """One run under ``objective=grpo``."""

    def make_source(self, scorer: Scorer, problems: Sequence[Problem]) -> TaskReward:
        """The reward function, which knows each batch."""
        objective = grpo_of(self.config)
        encoded = self.tokenizer([problem.prompt for problem in problems])["input_ids"]
        self.reward = TaskReward(
            scorer,
            problems,
            prompt_lengths=[len(ids) for ids in encoded],
            num_generations=objective.num_generations,
        )
        self._problems = problems
        return self.reward

    def make_trainer(self, model: Any, **shared: Any) -> Any:
        """TRL's trainer."""
        trainer: Any = _Trainer(
            entropy_shaping=grpo_of(self.config).entropy_shaping,
            model=model,
            reward_funcs=[self.reward],
            args=grpo_arguments(self.config, str(self.spec.directory)),
            train_dataset=_prompts(self._problems),
            processing_class=self.tokenizer,
            peft_config=adapter_config(self.config.method, self.spec.target_modules),
            **shared,
        )
        if torch.cuda.is_available():
            trainer.model.get_output_embeddings().register_forward_hook(_refuse_non_finite)
        return trainer


def grpo_of(config: RunConfig) -> GrpoObjective:
    """The objective of a run that this module trains."""
    assert isinstance(config.objective, GrpoObjective)
    return config.objective


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
