"""Supervised fine-tuning: packed runs are those of TRL's SFTTrainer, and its losses the formula's.

Solutions of mixed lengths, so that rows are padded; beside them, runs of GRPO.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from study.config import RunConfig, SftObjective
from study.lab.tokenizer import encode
from study.tasks.loading import load_task
from study.train.models import load_model, load_tokenizer
from study.train.solutions import Solutions
from tests.equivalence.agree import assert_bit_equal, assert_equals_trl
from tests.equivalence.models import save_tiny_model
from tests.equivalence.recorder import run, run_packed, run_trl
from tests.equivalence.recording import Recording

pytestmark = pytest.mark.equivalence

OF_A_RUN = ("rank", "alpha", "targets", "model", "train_prompts", "eval_every", "save")


def supervised(method: str, seed: int, **changes: Any) -> RunConfig:
    """A run of six steps of eight solutions; an evaluation after three."""
    own = {key: changes.pop(key) for key in list(changes) if key in OF_A_RUN}
    plain = run(method, **{"seed": seed, "eval_every": 3, "steps": 6, **own})
    settings = {
        "learning_rate": 0.03,
        "adam_epsilon": 1.0,  # updates are linear in gradients, as in test_replay
        "prompts_per_step": 8,
        **changes,
    }
    known = {f.name: getattr(plain.objective, f.name) for f in dataclasses.fields(SftObjective)}
    objective = SftObjective(**{**known, "name": "sft", "steps": 6, **settings})
    return dataclasses.replace(plain, objective=objective)


RUNS = {
    "r1": supervised("lora", 1, rank=1),
    "r8": supervised("lora", 2, rank=8),
    "full": supervised("full", 3),
    "attention": supervised("lora", 4, rank=2, targets="attention"),
    "micro": supervised("lora", 5, micro_batch_size=2),
    "full-micro": supervised("full", 6, micro_batch_size=4, weight_decay=0.1),
    "epochs": supervised("lora", 7, train_prompts=20),  # 20 problems, 2 steps an epoch, 4 left out
    "adam": supervised("full", 8, learning_rate=1e-3, adam_epsilon=1e-4),
    "one": supervised("lora", 9, prompts_per_step=1, max_grad_norm=0.1),
}
POLICY = run("lora", seed=10)


@pytest.fixture(scope="module")
def pack() -> dict[str, Recording]:
    *found, policy = run_packed([*RUNS.values(), POLICY])
    return {**dict(zip(RUNS, found, strict=True)), "policy": policy}


@pytest.mark.parametrize("name", RUNS)
def test_a_supervised_run_is_that_of_trl(pack, name):
    oracle = run_trl(RUNS[name])
    assert min(oracle.curve("train/grad_norm")) > 0
    assert oracle.curve("train/loss")[-1] != oracle.curve("train/loss")[0]
    assert_equals_trl(pack[name], oracle)


@pytest.mark.parametrize("name", ["r1", "full", "micro"])
def test_neighbours_change_no_bit(pack, name):
    (alone,) = run_packed([RUNS[name]])
    assert_bit_equal(pack[name], alone)


def test_a_run_of_grpo_beside_supervised_ones_is_trl_s(pack):
    assert_equals_trl(pack["policy"], run_trl(POLICY))


@pytest.mark.parametrize("family", ["llama", "gemma"])
def test_other_families_too(tmp_path: Path, family: str):
    save_tiny_model(family, tmp_path / family, tied=family == "gemma")
    configs = [supervised(method, 1, model=tmp_path / family) for method in ("lora", "full")]
    for packed, config in zip(run_packed(configs), configs, strict=True):
        assert_equals_trl(packed, run_trl(config))


def nll(config: RunConfig, model: Any, chosen: list[int]) -> float:
    """Mean negative log-likelihood in nats of solutions' tokens, in float64, row by row."""
    task, total, count = load_task(config.task), 0.0, 0
    problems = task.problems("train", config.task.train_prompts)
    end = load_tokenizer(config.model).eos_token_id
    for index in chosen:
        prompt, solution = encode(problems[index].prompt), encode(problems[index].solution)
        ids = torch.tensor([[*prompt, *solution, end]])
        with torch.no_grad():
            log_probs = torch.log_softmax(model(ids).logits[0].double(), -1)
        targets = ids[0, len(prompt) :]
        picked = log_probs[len(prompt) - 1 : -1].gather(1, targets.unsqueeze(1))
        total, count = total - float(picked.sum()), count + len(targets)
    return total / count


def test_the_loss_is_the_mean_likelihood_of_the_solutions(pack):
    recording = pack["full"]
    config, model = recording.config, load_model(recording.config.model)
    expected = nll(config, model, recording.batches[0].problems)
    assert recording.curve("train/loss")[0] == pytest.approx(expected, rel=1e-5)


def test_training_raises_the_likelihood_of_the_solutions(pack):
    recording = pack["adam"]
    model = load_model(recording.config.model)
    before = nll(recording.config, model, list(range(16)))
    weights = load_file(recording.spec.directory / "model" / "model.safetensors")
    model.load_state_dict(weights, strict=False)  # tied heads are stored once
    model.tie_weights()
    assert nll(recording.config, model, list(range(16))) < before


def test_an_epoch_is_a_permutation_and_leaves_out_what_fills_no_step(pack):
    chosen = [batch.problems for batch in pack["epochs"].batches]
    for epoch in (chosen[:2], chosen[2:4], chosen[4:]):
        rows = [index for step in epoch for index in step]
        assert len(rows) == len(set(rows)) == 16 and set(rows) <= set(range(20))
    assert chosen[:2] != chosen[2:4]


def test_counts_are_those_of_the_tokens(pack):
    for name in RUNS:
        recording = pack[name]
        config, outcome = recording.config, recording.outcome
        problems = load_task(config.task).problems("train", config.task.train_prompts)
        known = Solutions(config, problems, load_tokenizer(config.model))
        lengths = [
            len(known.prompts[index]) + len(known.completions[index])
            for batch in recording.batches
            for index in batch.problems
        ]
        assert outcome.train_tokens == sum(lengths)
        assert (outcome.episodes, outcome.generated_tokens, outcome.rollout_flops) == (0, 0, 0)
        seen = config.objective.prompts_per_step * 6
        assert recording.curve("train/prompts_seen")[-1] == seen == len(lengths)
        assert not {"reward_bits", "groups"} & set(outcome.probes)


def test_bounds_of_the_likelihood_are_sane(pack):
    for name in RUNS:
        assert all(0 < loss < math.log(100) * 20 for loss in pack[name].curve("train/loss"))
        assert all(0 <= share <= 1 for share in pack[name].curve("train/token_accuracy"))
