from __future__ import annotations

from pathlib import Path

import pytest

from study.compose import CONF_DIR, compose, split_sweeps
from study.config import EarlyStoppingConfig, FullMethod, LoraMethod


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method.rnak=3"], r"method\.rnak is not a key of LoraMethod; did you mean 'rank'\?"),
        (["+method.rnak=3"], r"method\.rnak is not a key of LoraMethod; did you mean 'rank'\?"),
        (["+depth=3"], "depth is not a key of StudyConfig"),
        (["method=full", "method.rank=8"], r"method\.rank is not a key of FullMethod"),
        (["metod=lora"], r"metod is not a key of StudyConfig; did you mean 'method'\?"),
        (["method=lroa"], r"method must be one of full, lora, got 'lroa'; did you mean 'lora'\?"),
        (["experiment=nope"], r"experiment must be one of .*quickstart.*, got 'nope'"),
        (["method.rank=0"], r"method\.rank >= 1 must hold, got rank=0"),
        (["method.rank=8.5"], r"method\.rank: Value '8\.5'"),
        (["method.alpha_rule=2r", "method.lora_alpha=16"], "not read under"),
        (["method.target_modules=[]"], r"method\.target_modules must be"),
        (["objective.learning_rate=0"], r"objective\.learning_rate > 0 must hold"),
        (["objective.learning_rate=-1e-3"], r"objective\.learning_rate > 0 must hold"),
        (["objective.learning_rate=nan"], r"objective\.learning_rate > 0 must hold"),
        (["objective.learning_rate=fast"], r"objective\.learning_rate: Value 'fast'"),
        (["objective.num_generations=1"], "a group of one has no advantage"),
        (["objective.micro_batch_size=7"], r"must divide .* 8 x 8 = 64, got 7"),
        (["objective.loss_type=grpo_typo"], r"objective\.loss_type must be one of grpo"),
        (["objective.scale_rewards=grup"], r"objective\.scale_rewards must be one of"),
        (["objective.steps=50"], r"final_window=3 needs as many .* gives 2"),
        (["objective.prompts_per_step=5000"], r"prompts_per_step <= task\.train_prompts"),
        (["seed=abc"], "seed: Value 'abc'"),
        (["seed=-1"], r"0 <= seed < 2\*\*32 must hold"),
        (["seed=4294967296"], r"0 <= seed < 2\*\*32 must hold"),
        (["experiment=quickstart", "experiment.seeds.report=[-1]"], r"seeds\.report < 2\*\*32"),
        (["experiment.extend=2"], r"experiment\.extend needs experiment=NAME"),
        (["objective.warmup_steps=5"], "not read under lr_scheduler_type=constant"),
        (["objective.lr_scheduler_type=constant_with_warmup"], "needs warmup_steps >= 1"),
        (["method.lora_alpha=inf"], r"method\.lora_alpha < inf must hold"),
        (["price_per_hour=-1"], "price_per_hour >= 0 must hold"),
        (["model=local"], r"model\.path must name a directory"),
        (["model.path=/x"], r"model\.path is only read with model\.source=local"),
        (["task=reasoning_gym"], r"task\.dataset must be set"),
        (["task=reasoning_gym", "task.dataset=chain_sum"], r"task\.threshold must be set"),
        (["engine.name=fast"], r"engine\.name must be one of auto, packed, trl, got 'fast'"),
        (["engine.pack_size=0"], r"engine\.pack_size >= 1 must hold"),
        (["engine=trl", "engine.pack_size=4"], "not read under engine=trl"),
        (["name=../escape"], "a name may hold letters"),
        (["experiment=quickstart", "experiment.seeds.report=[2]"], r"disjoint, both hold \[2\]"),
        (["experiment=quickstart", "experiment.seeds.search=[1,1]"], "must be distinct"),
        (
            ["experiment=quickstart", "experiment.early_stopping={grace_steps: 25, keep: 0.5}"],
            r"early_stopping is set in the experiment's file alone",
        ),
        (
            ["experiment=quickstart", "++experiment.early_stopping.keep=0.5"],
            r"early_stopping is set in the experiment's file alone",
        ),
        (["experiment=quickstart", "experiment.seeds.search=[]"], "search is not empty"),
        (["experiment=quickstart", "+experiment.arms.report=[]"], "cannot be called 'report'"),
        (["workers=0"], "workers >= 1 must hold"),
        (
            ["experiment=quickstart", "experiment.refine.points=4"],
            r"experiment.refine.points needs a block refine in quickstart.yaml",
        ),
        (["experiment=quickstart", "+experiment.ablate={source: full}"], "a block ablate in"),
        (["experiment=refined_rate", "experiment.refine={pts: 3}"], r"refine.pts is not a key of"),
        (["storage='${oc.env:NOT_SET_HERE}'"], "storage: the environment variable NOT_SET_HERE is"),
        (["method.rank=null"], r"method\.rank must have a value, got null"),
        (["~method.rank"], r"method\.rank must be set: it cannot be taken out"),
        (["~seed"], r"seed must be set: it cannot be taken out"),
        (["storage=postgresql://me@h/d?sslmode=require"], "twice quoted, \"storage='VALUE'\""),
    ],
)
def test_bad_input_is_one_sentence(overrides: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        compose(overrides)
    assert "\n" not in str(caught.value)


def test_an_override_that_cannot_be_read_shows_no_password() -> None:
    with pytest.raises(ValueError, match="storage: Hydra cannot read this override") as caught:
        compose(["storage=postgresql://me:sec'ret@dbhost/sweeps"])
    assert "sec" not in str(caught.value)


def test_defaults_compose_to_dataclasses() -> None:
    config = compose([])
    assert isinstance(config.method, LoraMethod)
    assert config.objective.learning_rate == config.method.default_learning_rate
    assert config.run().seed == 0
    assert config.experiment is None


def test_each_method_brings_its_own_learning_rate() -> None:
    config = compose(["method=full"])
    assert isinstance(config.method, FullMethod)
    assert config.objective.learning_rate == config.method.default_learning_rate != 1e-3


def test_empty_arm_list_is_refused(tmp_path: Path) -> None:
    from tests.plans import experiment

    with pytest.raises(ValueError, match="names at least one arm"):
        experiment(arms={})


EXPERIMENTS = sorted(path.stem for path in (CONF_DIR / "experiment").glob("*.yaml"))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_composes_and_states_its_question(name: str) -> None:
    config = compose([f"experiment={name}"])
    assert config.experiment is not None
    assert config.experiment.name == name
    assert all((config.experiment.hypothesis, config.experiment.decision_metric))
    for overrides in config.experiment.arms.values():
        compose([f"experiment={name}", *overrides])


def test_early_stopping_is_opted_into_by_a_file_and_can_be_switched_off() -> None:
    stopping = compose(["experiment=best_rate"]).experiment
    assert stopping is not None and isinstance(stopping.early_stopping, EarlyStoppingConfig)
    full = compose(["experiment=best_rate", "experiment.early_stopping=null"]).experiment
    assert full is not None and full.early_stopping is None
    quick = compose(["experiment=quickstart"]).experiment
    assert quick is not None and quick.early_stopping is None


GROUPS = [(p.parent.name, p.stem) for p in sorted(CONF_DIR.glob("*/*.yaml"))]


@pytest.mark.parametrize(("group", "option"), GROUPS)
def test_every_option_composes(group: str, option: str) -> None:
    needs = {
        "local": ["model.path=x"],
        "reasoning_gym": ["task.dataset=chain_sum", "task.threshold=0.99"],
    }
    compose([f"{group}={option}", *needs.get(option, [])])


def test_sweeps_are_split_from_fixed_overrides() -> None:
    fixed, swept = split_sweeps(
        ["method=lora", "method.rank=1,8", "objective.learning_rate=1e-4,1e-3", "name=x"]
    )
    assert fixed == ["method=lora", "name=x"]
    assert swept == {"method.rank": ["1", "8"], "objective.learning_rate": ["0.0001", "0.001"]}


@pytest.mark.parametrize(
    "override", ["objective.learning_rate=interval(1e-4,1e-2)", "model=glob(lab*)"]
)
def test_ranges_and_globs_are_refused(override: str) -> None:
    with pytest.raises(ValueError, match="sweeps are lists of values"):
        split_sweeps([override])


def test_lists_are_values_not_sweeps() -> None:
    fixed, swept = split_sweeps(["method.target_modules=[q_proj,v_proj]"])
    assert (fixed, swept) == (["method.target_modules=[q_proj,v_proj]"], {})


def test_a_launcher_in_an_experiments_file_is_refused_since_hydra_would_pass_over_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "experiment").mkdir()
    file = tmp_path / "experiment" / "x.yaml"
    file.write_text("defaults:\n  - _self_\n  - override /hydra/launcher: ray\n")
    monkeypatch.setattr("study.compose.CONF_DIR", tmp_path)
    with pytest.raises(ValueError, match=r"experiment=x: .*hydra/launcher=ray on the command line"):
        compose(["experiment=x"])
