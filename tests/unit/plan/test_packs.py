from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from typing import Any

import pytest

from study.config import EngineConfig, ModelConfig, SeedsConfig
from study.plan.arms import Arm
from study.plan.experiment import Plan, PlannedRun, from_json, plan_search, to_json
from study.plan.growth import merge
from study.plan.packs import (
    EngineChoice,
    Packer,
    choose_engine,
    pack_key,
    pack_share,
    pack_size,
    settle_engine,
    with_engine,
)
from study.sweep.view.progress import engine_line
from tests.plans import LORA_RATES, arm, description, experiment, full, lora, objective, run_config


def packed_arm(name: str = "a", **changes: Any) -> Arm:
    engine = EngineConfig(name="packed")
    return arm(name, run_config(**{"engine": engine, **changes}), LORA_RATES)


def sized(prompts: int, groups: int, **changes: Any) -> Arm:
    settings = objective(prompts_per_step=prompts, num_generations=groups)
    return packed_arm(objective=settings, **changes)


def test_runs_of_other_methods_and_sizes_share_a_process() -> None:
    key = pack_key(packed_arm())
    assert pack_key(packed_arm(method=full())) == key
    assert pack_key(packed_arm(method=lora(8))) == key
    assert pack_key(packed_arm(objective=objective(prompts_per_step=8, steps=9))) == key
    assert pack_key(packed_arm(seed=4, save="best")) == key


def test_runs_of_other_bases_tasks_and_engines_do_not() -> None:
    base = packed_arm()
    longer = dataclasses.replace(base.config.task, max_completion_length=9)
    others = [
        packed_arm(task=longer),
        packed_arm(engine=EngineConfig(name="trl")),
        dataclasses.replace(base, model=description(model_revision="xyz")),
        dataclasses.replace(base, model=description(data_revision="xyz")),
        packed_arm(model=ModelConfig(name="double", source="lab", dtype="bfloat16")),
    ]
    assert len({pack_key(base), *(pack_key(other) for other in others)}) == 6


@pytest.mark.parametrize(
    ("prompts", "groups", "size"),
    [(8, 8, 8), (4, 4, 32), (2, 2, 32), (32, 8, 2), (64, 8, 1), (64, 32, 1)],
)
def test_packs_reach_512_completions_a_step(prompts: int, groups: int, size: int) -> None:
    assert pack_size(sized(prompts, groups)) == size


def test_what_the_runs_hold_each_bounds_a_pack() -> None:
    # 16 bytes for each of 50 million trainable parameters: 0.8 GB a run of 4 GB.
    large = dataclasses.replace(packed_arm(), trainable_params=50_000_000)
    assert pack_size(large) == 5
    huge = dataclasses.replace(packed_arm(), trainable_params=8_000_000_000)
    assert pack_size(huge) == 1


def test_shares_follow_what_was_asked_but_trl_trains_alone() -> None:
    assert pack_share(sized(8, 8)) == Fraction(1, 8)
    assert pack_share(sized(8, 8), asked=3) == Fraction(1, 3)
    assert pack_share(sized(8, 8, engine=EngineConfig(name="trl")), asked=3) == 1


def toy(seeds: int = 4, **engines: Any) -> Plan:
    """Runs of 64 and of 16 completions a step, of one key."""
    arms = {"large": sized(8, 8, method=full()), "small": sized(4, 4)}
    arms = {name: dataclasses.replace(a, name=name) for name, a in arms.items()}
    question = experiment(
        arms={"large": [], "small": []},
        factors=["method", "objective"],
        seeds=SeedsConfig(search=list(range(seeds)), report=[]),
    )
    return plan_search(question, arms, "packed")


def test_a_pack_is_filled_in_order_up_to_its_size() -> None:
    plan = toy()
    large = [run for run in plan.runs if run.arm == "large"]
    small = [run for run in plan.runs if run.arm == "small"]
    packer = Packer(arms=plan.arms)
    assert packer.joining(large, [], 99) == large[:8]
    assert packer.joining(large, [], 3) == large[:3]
    assert packer.joining(small, [], 99) == small
    assert packer.joining(large, large[:6], 99) == large[:2]
    assert packer.joining(large, large[:8], 99) == []
    # Six large ones leave room for two eighths: one eighth and four of the 32nds, or eight.
    assert packer.joining(small, large[:6], 99) == small[:8]
    # Where an eighth does not fit, a 32nd further back still may.
    assert packer.joining([large[0], *small], [*large[1:8], small[0]], 1) == [small[0]]


def test_the_disk_is_asked_only_about_runs_that_fit() -> None:
    plan = toy()
    large = [run for run in plan.runs if run.arm == "large"]
    small = [run for run in plan.runs if run.arm == "small"]
    asked: list[PlannedRun] = []
    alone: set[str] = set()

    def is_open(run: PlannedRun) -> bool:
        asked.append(run)
        if run == small[1]:
            alone.add(run.run_id)  # its last pack died, as its directory says
        return run != small[0]

    packer = Packer(arms=plan.arms, alone=alone, key=pack_key(plan.arms["large"]))
    joined = packer.joining([*large[:3], *small], [*large[1:8], small[0]], 2, is_open)
    assert joined == small[2:4]
    assert asked == small[:4]


def test_runs_of_another_key_wait_for_their_own_pack() -> None:
    plan = toy()
    other = dataclasses.replace(plan.arms["small"], model=description(model_revision="x"))
    packer = Packer(arms={**plan.arms, "small": other})
    assert {run.arm for run in packer.joining(plan.runs, [], 99)} == {"large"}
    small = [run for run in plan.runs if run.arm == "small"]
    under_way = dataclasses.replace(packer, key=pack_key(plan.arms["large"]))
    assert under_way.joining(small, [], 99) == []
    assert under_way.joining(plan.runs, [], 1) == plan.runs[:1]


def test_a_run_that_goes_alone_opens_a_pack_and_shuts_it() -> None:
    plan = toy()
    first, second = plan.runs[:2]
    packer = Packer(arms=plan.arms, alone=frozenset({first.run_id}))
    assert packer.joining(plan.runs, [], 99) == [first]
    assert packer.joining([second], [first], 99) == []
    assert packer.joining([first], [second], 99) == []
    under_way = dataclasses.replace(packer, key=pack_key(plan.arms[first.arm]))
    assert under_way.joining([first, second], [], 99) == [second]  # its process is not fresh


def test_auto_is_packed_where_every_arm_qualifies() -> None:
    arms = {"full": packed_arm("full", method=full()), "lora": packed_arm("lora")}
    assert choose_engine("auto", arms) == EngineChoice(asked="auto", name="packed")
    assert choose_engine("packed", arms).name == "packed"
    assert choose_engine("trl", arms).name == "trl"


REFUSED = [
    ({"objective": objective(beta=0.01)}, "", "sets objective.beta=0.01"),
    (
        {"model": ModelConfig(name="double", source="lab", dtype="bfloat16")},
        "",
        "sets model.dtype=bfloat16",
    ),
    ({}, "has a model of type gpt2", "has a model of type gpt2"),
]


@pytest.mark.parametrize(("changes", "refusal", "said"), REFUSED)
def test_one_arm_that_does_not_qualify_decides_for_all(
    changes: dict[str, Any], refusal: str, said: str
) -> None:
    odd = packed_arm("odd", **changes)
    odd = dataclasses.replace(odd, model=dataclasses.replace(odd.model, packed_refusal=refusal))
    arms = {"fine": packed_arm("fine"), "odd": odd}
    choice = choose_engine("auto", arms)
    assert (choice.name, choice.reason) == ("trl", f"since arm odd {said}")
    assert choose_engine("trl", arms).name == "trl"
    with pytest.raises(ValueError, match=f"cannot train arm odd, which {said}; use engine=trl"):
        choose_engine("packed", arms)


def test_the_engine_changes_no_run_id() -> None:
    plan = toy()
    other = plan_search(plan.experiment, with_engine(plan.arms, "trl"), "trl")
    assert [run.run_id for run in other.runs] == [run.run_id for run in plan.runs]


def by_trl(plan: Plan) -> Plan:
    return plan_search(plan.experiment, with_engine(plan.arms, "trl"), "trl")


def test_an_experiment_keeps_the_engine_it_began_with() -> None:
    old, new = by_trl(toy()), toy(seeds=5)
    settled, choice = settle_engine(old, new, EngineChoice(asked="auto", name="packed"))
    assert (choice.name, choice.reason) == ("trl", "as the experiment began with it")
    merged = merge(old, settled)
    assert merged.engine == "trl"
    assert {a.config.engine.name for a in merged.arms.values()} == {"trl"}
    assert len(merged.runs) == 30


def test_another_engine_needs_another_name() -> None:
    old, new = by_trl(toy()), toy()
    with pytest.raises(ValueError, match=r"toy is trained by engine=trl, got engine=packed.*name="):
        settle_engine(old, new, EngineChoice(asked="packed", name="packed"))
    with pytest.raises(ValueError, match=r"by engine=packed, got engine=trl"):
        settle_engine(new, old, EngineChoice(asked="trl", name="trl"))
    refused = EngineChoice(asked="auto", name="trl", reason="since arm x sets objective.beta=1")
    with pytest.raises(ValueError, match=r"which cannot go on since arm x sets objective\.beta=1"):
        settle_engine(new, old, refused)


def test_single_runs_have_an_engine_each() -> None:
    old = toy()
    old = dataclasses.replace(old, experiment=dataclasses.replace(old.experiment, kind="single"))
    new = by_trl(old)
    settled, choice = settle_engine(old, new, EngineChoice(asked="trl", name="trl"))
    merged = merge(old, settled)
    assert (settled, choice.name, merged.engine) == (new, "trl", "trl")
    assert merged.arms["large"].config.engine.name == "trl"


def test_the_engine_is_said_in_a_line() -> None:
    plan = toy()
    packed = EngineChoice(asked="auto", name="packed")
    assert engine_line(plan, packed, None) == "packed (8 to 32 runs a process)"
    assert engine_line(plan, packed, 4) == "packed (4 runs a process)"
    trl = EngineChoice(asked="auto", name="trl", reason="since arm x sets objective.beta=0.01")
    assert engine_line(by_trl(plan), trl, None) == "trl, since arm x sets objective.beta=0.01"
    assert engine_line(by_trl(plan), EngineChoice(asked="trl", name="trl"), None) == "trl"


def test_plans_older_than_the_packed_engine_are_read() -> None:
    plan = by_trl(toy())
    data = json.loads(json.dumps(to_json(plan)))
    for old in data["arms"].values():
        del old["model"]["packed_refusal"]
        del old["config"]["engine"]["pack_size"]
    assert from_json(data) == plan
