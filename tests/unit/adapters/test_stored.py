"""Which adapters there are, and which are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from study.adapters.stored import find_adapters, shared_base
from study.config import FullMethod
from tests.unit.adapters.stored_adapters import named, write_adapter
from tests.unit.probes.stored_runs import write_run


def test_an_adapter_says_what_it_is(tmp_path: Path) -> None:
    path = write_adapter(tmp_path / "arm" / "run", 0)
    (found,) = find_adapters([str(path)])
    assert (found.name, found.rank, found.scaling) == ("arm/run", 2, 2.0)
    files = ("adapter_config.json", "adapter_model.safetensors")
    assert found.bytes == sum((path / "adapter" / name).stat().st_size for name in files)
    assert named(mine=path)[0].name == "mine"


def test_what_has_no_adapter_is_refused_with_the_reason(tmp_path: Path) -> None:
    full = write_run(tmp_path / "full" / "r", FullMethod(name="full", default_learning_rate=1e-3))
    with pytest.raises(ValueError, match="holds no adapter"):
        find_adapters([str(full)])


def test_names_must_differ(tmp_path: Path) -> None:
    one, two = (write_adapter(tmp_path / "a" / name, 0) for name in ("r1", "r2"))
    with pytest.raises(ValueError, match="must differ in their names, got x, x"):
        find_adapters([f"x={one}", f"x={two}"])


@pytest.mark.parametrize(
    ("key", "value"), [("use_dora", True), ("use_rslora", True), ("rank_pattern", {"q_proj": 4})]
)
def test_more_than_plain_lora_is_refused(tmp_path: Path, key: str, value: object) -> None:
    path = write_adapter(tmp_path / "a" / "r", 0)
    file = path / "adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    (found,) = find_adapters([str(path)])
    with pytest.raises(ValueError, match=rf"nothing else, but sets {key}="):
        _ = found.rank


def test_adapters_of_two_bases_do_not_mix(tmp_path: Path) -> None:
    one, two = (write_adapter(tmp_path / "a" / name, 0) for name in ("r1", "r2"))
    record = json.loads((two / "record.json").read_text())
    (two / "record.json").write_text(json.dumps(record | {"model_revision": "another"}))
    with pytest.raises(ValueError, match="must share one base, but one was trained on lab32"):
        shared_base(named(one=one, two=two))
