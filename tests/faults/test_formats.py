"""Only safetensors, JSON, Parquet, CSV and safe YAML are read back: data, never code."""

from __future__ import annotations

import ast
import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from study.config import ModelConfig

ROOT = Path(__file__).parents[2]
MODULES = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "_pickle", "jsonpickle"}
CALLS = {"torch.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load", "pd.read_pickle",
         "pandas.read_pickle", "np.load", "numpy.load", "eval", "exec", "__import__"}  # fmt: skip
ARGUMENTS = {"allow_pickle", "trust_remote_code", "weights_only"}
ALLOWED = {"False", "config.trust_remote_code"}
"""The latter is the user's own word for one model, and off by default."""
IN_TRANSIT = {"hydra_plugins/lora_rl_study/_job.py": {"cloudpickle"}}
"""A launcher packs its own job for its own worker; nothing is read back from a disk of others."""


def sources() -> Iterator[Path]:
    for package in ("study", "analysis", "hydra_plugins"):
        yield from sorted((ROOT / package).rglob("*.py"))


def unsafe(tree: ast.AST) -> Iterator[str]:
    """Imports, calls and arguments by which a file that is read could run code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield str(node.module)
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) in CALLS:
                yield ast.unparse(node.func)
            for keyword in node.keywords:
                if keyword.arg in ARGUMENTS and ast.unparse(keyword.value) not in ALLOWED:
                    yield str(keyword.arg)


def test_no_module_reads_anything_that_could_run_code() -> None:
    found = {}
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        rest = set(unsafe(ast.parse(path.read_text()))) - IN_TRANSIT.get(name, set())
        if rest:
            found[name] = rest
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "yaml.load(text, Loader=x)",
        "np.load(path)",
        "pd.read_pickle(path)",
        "f(trust_remote_code=True)",
        "eval(text)",
    ],
)
def test_the_scan_sees_what_it_is_for(code: str) -> None:
    assert list(unsafe(ast.parse(code)))


def test_code_of_a_model_is_not_trusted_by_default() -> None:
    assert ModelConfig(name="m", source="local", path="x").trust_remote_code is False


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.timeout(120)  # imports torch
def test_a_model_of_pickled_weights_alone_is_refused_unread(tmp_path: Path) -> None:
    from study.train.models import check_directory

    model, mark = tmp_path / "model", tmp_path / "ran"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(mark)))

    with pytest.raises(ValueError, match="lacks the safetensors weights") as caught:
        check_directory(model)
    assert "\n" not in str(caught.value) and not mark.exists()
    pickle.loads((model / "pytorch_model.bin").read_bytes())  # it would have run
    assert mark.exists()
