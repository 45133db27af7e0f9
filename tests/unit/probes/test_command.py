"""The command ``python -m study.probes``."""

import json

import pytest

from study.plan.experiment import to_json
from study.probes.__main__ import main
from study.probes.table import HEADINGS, cells
from study.records.files import write_json
from study.train.models import load_model
from tests import plans
from tests.unit.probes.stored_runs import LAB, TARGETS, adapted_model, changed_model, write_run

LORA = plans.lora(rank=2)


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def read(path):
    found = json.loads((path / "probes.json").read_text())
    assert (found["schema_version"], found["run_id"]) == (2, path.name)
    return found["weights"]


def refusal(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    return capsys.readouterr().err


def test_a_lora_run(tmp_path, capsys):
    path = write_run(tmp_path / "lora-r2" / "a", LORA, adapted_model(LORA), save="best")
    main([str(path), "--draws", "4"])
    found = read(path)
    assert (found["weights"], found["save"]) == ("adapter", "best")
    assert found["dtype"] == "float32"
    assert found["settings"]["draws"] == 4
    assert found["settings"]["null_coverage"] == pytest.approx(0.6)
    assert [m["name"] for m in found["matrices"]] == [f"{target}.weight" for target in TARGETS]
    assert [(m["module"], m["depth"]) for m in found["matrices"]] == [
        ("q_proj", 0),
        ("down_proj", 1),
    ]
    assert [m["observed"]["numerical_rank"] for m in found["matrices"]] == [2, 2]
    assert found["by_module"].keys() == {"q_proj", "down_proj"}
    assert found["by_depth"].keys() == {"0", "1"}
    assert found["overall"]["observed"]["energy_top_2"] == pytest.approx(1)
    assert found["trained"] == found["overall"]["counts"]
    assert found["other"] == {}
    null = found["overall"]["null"]
    assert null["gaussian"]["numerical_rank"]["low"] > 2
    assert "numerical_rank" not in null["turned"]
    assert "q_proj" in capsys.readouterr().out


def test_a_full_run_counts_what_is_no_matrix_apart(tmp_path):
    """Norms and the embedding stay, and 2 of the layers' matrices change in every weight."""
    model = changed_model(lambda name, w: w * 1.5 + 1 if "v_proj" in name else w)
    path = write_run(tmp_path / "full" / "a", plans.full(), model)
    main([str(path), "--draws", "2"])
    found = read(path)
    total = sum(weight.numel() for weight in load_model(LAB).parameters())
    changed = found["by_module"]["v_proj"]["counts"]["parameters"]
    assert found["trained"]["parameters"] == total
    assert found["trained"]["bf16"] == found["trained"]["fp32"] == total - changed
    assert found["by_module"]["v_proj"]["observed"]["unchanged_fp32"] == 0
    assert found["by_module"]["k_proj"]["observed"]["unchanged_fp32"] == 1
    assert {"embed_tokens", "norm", "q_norm"} <= found["other"].keys()
    parts = [found["overall"]["counts"], *found["other"].values()]
    assert sum(part["parameters"] for part in parts) == total


def test_an_experiment_measures_what_kept_its_weights_and_names_the_rest(tmp_path, capsys):
    plan = plans.toy_plan()
    write_json(tmp_path / "plan.json", to_json(plan))
    runs = [run for run in plan.runs if run.arm == "lora-r1"][:4]
    places = [tmp_path / run.arm / run.run_id for run in runs]
    method = plans.lora()
    for place in places[:2]:
        write_run(place, method, adapted_model(method))
    write_run(places[2], method, save="none")
    write_run(places[3], method, status="diverged")
    main([str(tmp_path), str(places[0]), "--draws", "2"])
    out = capsys.readouterr().out
    assert all((place / "probes.json").exists() for place in places[:2])
    assert not any((place / "probes.json").exists() for place in places[2:])
    assert f"lora-r1/{places[1].name}" in out
    assert f"skipped {len(plan.runs) - 2} of {len(plan.runs)} runs: " in out
    assert f"1 (save=none): lora-r1/{places[2].name}" in out
    assert f"or they were removed): lora-r1/{places[3].name}" in out
    assert f"{len(plan.runs) - 4} (not finished): full/" in out
    assert f", {len(plan.runs) - 10} more" in out


def test_the_table_keeps_every_column_and_whole_ids_in_a_terminal_of_80(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    names = ["046267a239d0", "3b7c8b421bb3"]
    paths = [write_run(tmp_path / "lora-r8" / n, LORA, adapted_model(LORA)) for n in names]
    main([str(path) for path in paths] + ["--draws", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(f"lora-r8/{n} ") for line in lines) for n in names)
    assert lines[1].split() == ["run", *" ".join(HEADINGS).split()]


def test_the_same_run_gives_the_same_file(tmp_path):
    path = write_run(tmp_path / "lora" / "a", LORA, adapted_model(LORA))
    main([str(path), "--draws", "2"])
    first = (path / "probes.json").read_text()
    main([str(path), "--draws", "2"])
    assert (path / "probes.json").read_text() == first


def test_nothing_to_measure_is_one_sentence(tmp_path, capsys):
    path = write_run(tmp_path / "full" / "a", plans.full(), save="none")
    assert refusal(capsys, path) == (
        "error: no run to measure: skipped 1 of 1 runs: 1 (save=none): full/a; launch with "
        "save=last or save=best\n"
    )


def test_other_places_are_one_sentence(tmp_path, capsys):
    assert "is neither a finished run" in refusal(capsys, tmp_path)
    assert "is neither a finished run" in refusal(capsys, tmp_path / "absent")
    data = to_json(plans.toy_plan())
    data["experiment"]["kind"] = "imported"
    write_json(tmp_path / "plan.json", data)
    assert "was imported from elsewhere" in refusal(capsys, tmp_path)


@pytest.mark.parametrize("content", ["model: {", "seed: 1\n", "- 1\n", None])
def test_a_damaged_configuration_is_one_sentence(tmp_path, capsys, content):
    path = write_run(tmp_path / "full" / "a", plans.full(), save="none")
    (path / "config.yaml").unlink()
    if content is not None:
        (path / "config.yaml").write_text(content)
    error = refusal(capsys, path)
    assert "config.yaml is not the configuration of a run" in error
    assert error.count("\n") == 1


def test_one_draw_is_refused(tmp_path, capsys):
    path = write_run(tmp_path / "full" / "a", plans.full(), save="none")
    assert "draws >= 2 must hold" in refusal(capsys, path, "--draws", 1)


def test_cells_mark_what_is_outside_of_the_null():
    observed = {
        "unchanged_bf16": 0.125,
        "unchanged_fp32": None,
        "relative_norm": 0.0123,
        "effective_rank_share": 0.5,
        "energy_top_1": 0.25,
        "angle_left_mean_deg": 2.0,
        "spectral_shift": 0.004,
        "largest_on_principal": 0.9,
        "intruders": 0.0,
    }
    around = {"mean": 1.0, "low": 0.5, "high": 1.5}
    null = dict.fromkeys(observed, around) | {"intruders": None}
    assert cells({"observed": observed, "null": {"turned": null}}) == [
        "12.5%", "-", "0.012", "50%", "25%", "2>", "0.004<", "0.90 ", "0 ",
    ]  # fmt: skip
