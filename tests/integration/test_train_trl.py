"""The engine `trl` on the lab model, a few real steps at a time."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from peft import PeftModel
from train_runs import METHODS, ListSink, run_config, run_spec, train
from transformers import AutoModelForCausalLM

from study.config import ModelConfig, SftObjective
from study.lab import lab_model_path
from study.plan.flops import Sequences, forward_flops, train_flops
from study.train import trl
from study.train.health import Diverged
from study.train.methods import trained
from study.train.models import hash_parameters, load_tokenizer
from study.train.tally import METRIC_NAMES
from study.train.trl import grpo

pytestmark = pytest.mark.integration

BOTH = pytest.mark.parametrize("method", ["full", "lora"])


@BOTH
def test_outcome_is_consistent(method, tmp_path):
    outcome, sink = train(run_config(method), tmp_path)
    assert outcome.status == "completed"
    assert (outcome.steps_done, outcome.episodes) == (3, 48)
    assert [step for step, _ in sink.logs] == [1, 2, 3]
    assert [e.step for e in sink.evaluations] == [0, 3]
    assert outcome.score_base == sink.evaluations[0].accuracy
    assert outcome.score_final == outcome.score_best == sink.evaluations[1].accuracy
    assert outcome.score_greedy == sink.evaluations[1].greedy_accuracy
    assert sum(sink.curve("train/completion_length")) * 16 == outcome.generated_tokens
    assert outcome.train_tokens == outcome.generated_tokens + 48 * 9  # "12+34+56=" has 9 tokens
    assert sink.curve("train/prompts_seen") == [4, 8, 12]
    assert sink.curve("train/correct") == sink.curve("train/reward")
    assert outcome.dtypes["base"] == outcome.dtypes["optimizer"] == "float32"
    assert outcome.dtypes.get("adapter", "none") == {"full": "none", "lora": "float32"}[method]
    assert outcome.peak_memory_bytes > 1e8
    assert not list(tmp_path.iterdir())  # save: none


def test_evaluation_counts_tokens_and_keeps_prompts_fixed(tmp_path):
    _, sink = train(run_config("full", eval_batch_size=20), tmp_path)
    first, last = sink.evaluations
    assert first.prompt_ids == last.prompt_ids
    assert len(set(first.prompt_ids)) == 32
    for evaluation in sink.evaluations:
        for text, tokens in zip(evaluation.completions, evaluation.tokens, strict=True):
            assert tokens in (len(text), len(text) + 1)  # one character a token; "<eos>" adds one
    assert first.mean_reward == first.accuracy
    assert sink.signs_of_life == 2 * 2 * 2  # evaluations x (sampled, greedy) x batches of 20 and 12


def test_every_metric_name_is_in_a_real_log(tmp_path):
    _, sink = train(run_config("full", beta=0.01), tmp_path)
    plain = run_config("full")
    known = {f.name: getattr(plain.objective, f.name) for f in dataclasses.fields(SftObjective)}
    supervised = dataclasses.replace(plain, objective=SftObjective(**{**known, "name": "sft"}))
    _, learned = train(supervised, tmp_path / "sft")
    assert set(METRIC_NAMES.values()) <= {*sink.logs[-1][1], *learned.logs[-1][1]}
    assert "train/token_accuracy" not in sink.logs[-1][1]


@BOTH
def test_flops_and_bits_of_a_run_add_up(method, tmp_path):
    config = run_config(method)
    outcome, sink = train(config, tmp_path)
    spec, probes = run_spec(config, tmp_path), outcome.probes
    # A greedy and a sampled completion of 32 prompts of 9 tokens, twice.
    work = [evaluation.work for evaluation in sink.evaluations]
    assert all(w.logits > sum(e.tokens) for w, e in zip(work, sink.evaluations, strict=True))
    assert all(w.tokens == 64 * 9 + w.logits - 64 for w in work)
    assert probes["evaluation_flops"] == forward_flops(spec.model, work[0] + work[1])
    assert sink.curve("train/flops") == [outcome.train_flops + outcome.rollout_flops]
    shortest = Sequences(outcome.train_tokens, outcome.train_tokens**2 // 48)
    longest = Sequences.trained([(9, 14)] * 48)
    bounds = [
        train_flops(config.method, spec.target_modules, spec.model, work)
        for work in (shortest, longest)
    ]
    assert bounds[0] < outcome.train_flops <= bounds[1]
    assert probes["reward_bits"] == sum(sink.curve("train/reward_bits")) <= 48
    assert (probes["reward_values"], probes["groups"]) == (2, 12)
    assert probes["zero_variance_groups"] == 4 * sum(sink.curve("train/frac_reward_zero_std"))


@BOTH
def test_equal_seeds_are_bit_equal_and_other_seeds_are_not(method, tmp_path):
    outcome, sink = train(run_config(method, seed=1), tmp_path)
    torch.rand(7)  # random numbers consumed in between
    again, again_sink = train(run_config(method, seed=1), tmp_path)
    other, _ = train(run_config(method, seed=2), tmp_path)
    assert again.probes == outcome.probes
    assert again_sink.without_times() == sink.without_times()
    assert again_sink.evaluations == sink.evaluations
    assert other.probes["weights_after"] != outcome.probes["weights_after"]
    same_start = other.probes["weights_before"] == outcome.probes["weights_before"]
    assert same_start == (method == "full")  # only an adapter is drawn


@BOTH
def test_evaluation_does_not_disturb_training(method, tmp_path):
    rare, rare_sink = train(run_config(method, eval_every=3), tmp_path)
    often, often_sink = train(run_config(method, eval_every=1, eval_batch_size=16), tmp_path)
    assert len(often_sink.evaluations) == 4
    assert _lines(often_sink) == _lines(rare_sink)
    own, other = (dict(outcome.probes) for outcome in (often, rare))
    assert own.pop("evaluation_flops") > other.pop("evaluation_flops")
    assert own == other


def _lines(sink):
    """Metrics without times, and without what is logged where an evaluation is due."""
    lines = sink.without_times()
    return [(s, {k: v for k, v in m.items() if k != "train/flops"}) for s, m in lines]


@pytest.mark.parametrize("loss_type", ["grpo", "dr_grpo", "dapo"])
def test_split_of_a_step_keeps_its_gradient(loss_type, tmp_path):
    def norms(micro_batch_size: int | None) -> list[float]:
        config = run_config(
            "full",
            prompts_per_step=8,
            micro_batch_size=micro_batch_size,
            loss_type=loss_type,
            steps=1,
            eval_every=1,
            eval_prompts=4,
        )
        return train(config, tmp_path)[1].curve("train/grad_norm")

    whole = norms(None)
    assert whole[0] > 0
    assert norms(8) == pytest.approx(whole, rel=1e-5)


def test_last_adapter_is_saved_in_peft_format(tmp_path):
    outcome, _ = train(run_config("lora", save="last"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["adapter"]
    base = AutoModelForCausalLM.from_pretrained(lab_model_path("lab64"))
    loaded = PeftModel.from_pretrained(base, tmp_path / "adapter", is_trainable=True)
    assert hash_parameters(trained(loaded)) == outcome.probes["weights_after"]


@pytest.mark.parametrize("save", ["last", "best"])
def test_whole_model_is_saved(save, tmp_path):
    config = run_config("full", save=save, eval_every=3 if save == "best" else 1)
    outcome, _ = train(config, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert hash_parameters(loaded.named_parameters()) == outcome.probes["weights_after"]


@BOTH
def test_two_passes_over_a_batch_with_a_penalty(method, tmp_path):
    config = run_config(method, steps=4, num_iterations=2, beta=0.1, eval_every=4)
    outcome, sink = train(config, tmp_path)
    assert (outcome.steps_done, outcome.episodes) == (4, 32)
    assert sink.curve("train/prompts_seen") == [4, 4, 8, 8]
    assert sink.curve("train/kl")[0] == pytest.approx(0.0, abs=1e-6)  # the base is the reference
    assert len(sink.curve("train/reward")) == 2  # logged where completions are sampled


@BOTH
def test_bfloat16_keeps_adapters_in_float32(method, tmp_path):
    outcome, _ = train(run_config(method, dtype="bfloat16"), tmp_path)
    expected = {
        "full": {"base": "bfloat16", "optimizer": "bfloat16"},
        "lora": {"base": "bfloat16", "adapter": "float32", "optimizer": "float32"},
    }
    assert outcome.dtypes == expected[method]


def test_base_without_finite_probabilities_is_no_result(tmp_path):
    base = AutoModelForCausalLM.from_pretrained(lab_model_path("lab64"))
    base.model.norm.weight.data.fill_(float("nan"))
    base.save_pretrained(tmp_path / "base")
    load_tokenizer(run_config().model).save_pretrained(tmp_path / "base")
    model = ModelConfig(name="broken", source="local", path=str(tmp_path / "base"))
    with pytest.raises(ValueError, match="broken must have finite sampling probabilities"):
        train(dataclasses.replace(run_config(), model=model), tmp_path)


def test_non_finite_logits_end_generation_but_not_training():
    logits = torch.tensor([[0.0, float("-inf")], [1.0, 2.0]])
    with torch.no_grad():
        grpo._refuse_non_finite(None, None, logits)
        for bad in (float("nan"), float("inf")):
            logits[0, 0] = bad
            with pytest.raises(Diverged):
                grpo._refuse_non_finite(None, None, logits)
    grpo._refuse_non_finite(None, None, logits)


def test_model_that_changed_after_planning_is_refused(tmp_path):
    spec = run_spec(run_config(), tmp_path)
    changed = dataclasses.replace(
        spec, model=dataclasses.replace(spec.model, model_revision="0" * 16)
    )
    with pytest.raises(ValueError, match="has changed since the run was planned"):
        trl.train([changed], ListSink(), lambda: None)


def test_other_number_of_trainable_parameters_is_refused(tmp_path):
    spec = dataclasses.replace(run_spec(run_config(), tmp_path), trainable_params=1)
    with pytest.raises(RuntimeError, match="1 parameters must be trainable"):
        trl.train([spec], ListSink(), lambda: None)


def test_two_runs_at_once_are_refused(tmp_path):
    spec = run_spec(run_config(), tmp_path)
    with pytest.raises(ValueError, match="exactly one run"):
        trl.train([spec, spec], ListSink(), lambda: None)


def test_adapter_sizes_follow_the_closed_form(tmp_path):
    spec = run_spec(run_config("lora"), tmp_path)
    rank = METHODS["lora"].rank
    expected = sum(rank * (a + b) for a, b in spec.model.linear_modules.values())
    assert spec.trainable_params == expected
