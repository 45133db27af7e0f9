"""What is measured of a stored run, recomputed from its parts."""

import json
import math

import pytest

from study.probes.behaviour.models import base_model, tuned_model
from study.probes.behaviour.result import measure_behaviour
from study.probes.behaviour.sampling import Drawn, completion_logits
from study.probes.behaviour.settings import BehaviourSettings
from study.tasks.loading import load_task
from tests import plans
from tests.unit.probes.stored_runs import adapted_model, changed_model, read_run, write_run

LORA = plans.lora(rank=2)
SMALL = BehaviourSettings(prompts=3, samples=4, scored=2, shown=1, family_samples=1)


def silent(*_):
    """Hears nothing."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return read_run(write_run(place / "lora" / "a", LORA, adapted_model(LORA, scale=0.5)))


@pytest.fixture(scope="module")
def found(run):
    return measure_behaviour(run, SMALL, silent)


def test_what_is_found_is_json_and_the_same_again(run, found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert measure_behaviour(run, SMALL, silent) == found


def test_counts_agree_with_the_answers_that_are_shown(run, found):
    (shown,) = found["answers"]
    for name in ("base", "tuned"):
        counts = shown[name]
        assert sum(counts.values()) == 4
        assert found[name]["correct"][0] == counts.get(shown["answer"], 0)
        assert found[name]["distinct"][0] == len(counts)


def test_prompts_are_those_that_no_run_trains_on(run, found):
    task = load_task(run.config.task)
    trained = {p.prompt_id for p in task.problems("train", run.config.task.train_prompts)}
    assert not trained & set(found["prompt_ids"])
    assert len(found["prompt_ids"]) == 3


def test_every_other_family_is_asked(found):
    assert set(found["families"]) == {"difference", "product", "comparison", "sorting", "gcd"}


def test_an_adapter_moves_the_model(found):
    kl = found["forward_kl"]
    assert kl["per_token"] > 0.01
    assert kl["sequences"] == 6
    assert kl["per_sequence"] * 6 == pytest.approx(kl["per_token"] * kl["tokens"])


def test_a_model_that_did_not_change_behaves_as_its_base(tmp_path):
    same = changed_model(lambda name, weight: weight)
    run = read_run(write_run(tmp_path / "full" / "b", plans.full(), same))
    found = measure_behaviour(run, SMALL, silent)
    assert found["base"] == found["tuned"]
    assert found["forward_kl"]["per_token"] == 0
    assert found["crossover"] is None
    assert all(own["base"] == own["tuned"] for own in found["families"].values())


def test_logits_of_a_batch_are_those_of_each_sequence_alone(run):
    model = tuned_model(run)
    drawn = [Drawn([3, 4, 5], [6]), Drawn([3], [4, 5, 7])]
    (together,) = completion_logits(model, drawn, silent)
    alone = [next(completion_logits(model, [one], silent)) for one in drawn]
    assert together.shape[0] == 4
    for row, single in zip(together.split([1, 3]), alone, strict=True):
        assert (row - single).abs().max() < 1e-4
    assert math.isclose(model.config.vocab_size, together.shape[1])


def test_the_base_is_not_the_adapted_model(run):
    drawn = [Drawn([3, 4], [5])]
    base, tuned = (
        next(completion_logits(m(run), drawn, silent)) for m in (base_model, tuned_model)
    )
    assert (base - tuned).abs().max() > 0.01


@pytest.mark.parametrize(
    "wrong", [{"samples": 0}, {"prompts": 0}, {"shown": 100}, {"samples": 2, "scored": 3}]
)
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="must hold"):
        BehaviourSettings(**wrong)


def test_a_run_without_weights_is_refused(tmp_path):
    from study.probes.stored import StoredRun

    kept = read_run(write_run(tmp_path / "lora" / "c", LORA, adapted_model(LORA)))
    lost = StoredRun(tmp_path / "elsewhere", kept.record, kept.config)
    with pytest.raises(ValueError, match="cannot be measured"):
        measure_behaviour(lost, SMALL, silent)
