"""The file that a run gets at its end, whatever becomes of its measurement."""

import errno
import json

import pytest

from study.config import ProbesConfig
from study.probes.result import Prober
from study.probes.settings import Settings
from study.records.files import write_json
from tests import plans
from tests.unit.probes.stored_runs import adapted_model, read_run, write_run

DEFAULT = ProbesConfig(name="default", draws=2)
LORA = plans.lora(rank=2)


def silent(what, done):
    """Hears nothing."""


def read(path):
    return json.loads((path / "probes.json").read_text())


@pytest.fixture
def run(tmp_path):
    return read_run(write_run(tmp_path / "lora" / "a", LORA, adapted_model(LORA)))


def test_a_run_that_has_just_ended_is_measured_as_a_stored_one(run):
    Prober().probe_result(run, DEFAULT, silent)
    at_end = read(run.path)["weights"]
    assert at_end.pop("seconds") > 0
    Prober().probe(run, Settings(draws=2), silent)
    assert read(run.path)["weights"] == at_end


def test_signs_of_life_are_given_within_a_matrix(run):
    told = []
    Prober().probe_result(run, DEFAULT, lambda what, done: told.append((what, done)))
    name = "model.layers.0.self_attn.q_proj.weight"
    assert [done for what, done in told if what == name] == [False] * 4 + [True]  # 2 x 2 draws


def test_what_goes_wrong_is_written_and_not_raised(run):
    (run.weights / "adapter_model.safetensors").write_bytes(b"{")
    Prober().probe_result(run, DEFAULT, silent)
    found = read(run.path)
    assert found["run_id"] == "a"
    assert found["weights"]["failed"].startswith("ValueError: ")
    assert "cannot be read as safetensors weights" in found["weights"]["failed"]


def test_while_it_is_measured_the_file_says_that_it_did_not_end(run):
    seen = []
    Prober().probe_result(run, DEFAULT, lambda what, done: seen.append(read(run.path)))
    assert seen[0]["weights"] == {"failed": "the process ended before it was measured"}


def test_a_full_disk_is_raised(run):
    def full(what, done):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        Prober().probe_result(run, DEFAULT, full)


def test_a_run_without_weights_is_left_out(tmp_path):
    path = write_run(tmp_path / "lora" / "a", LORA, adapted_model(LORA))
    run = read_run(path)
    for file in run.weights.iterdir():
        file.unlink()
    run.weights.rmdir()
    Prober().probe_result(run, DEFAULT, silent)
    assert "ended before it had weights" in read(path)["weights"]["left_out"]


def test_parts_of_others_stay_and_older_files_go(run):
    known = {"schema_version": 2, "behaviour": {"pass_at_1": 0.5}}
    write_json(run.path / "probes.json", known)
    Prober().probe(run, Settings(draws=2), silent)
    assert read(run.path)["behaviour"] == {"pass_at_1": 0.5}
    write_json(run.path / "probes.json", {"schema_version": 1, "trained": {}})
    Prober().probe(run, Settings(draws=2), silent)
    assert set(read(run.path)) == {"schema_version", "run_id", "weights"}


def test_random_updates_are_a_runs_own(tmp_path):
    """Two runs of one update and different seeds are held against different updates."""
    found = []
    for seed in (0, 1):
        path = write_run(tmp_path / f"lora{seed}" / "a", LORA, adapted_model(LORA))
        text = (path / "config.yaml").read_text()
        (path / "config.yaml").write_text(text.replace("\nseed: 0", f"\nseed: {seed}"))
        Prober().probe(read_run(path), Settings(draws=2), silent)
        found.append(read(path)["weights"]["overall"])
    assert found[0]["observed"] == found[1]["observed"]
    assert found[0]["null"] != found[1]["null"]
