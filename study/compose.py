"""From ``conf/`` and command-line overrides to plain dataclasses: the only place with OmegaConf."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hydra
import yaml
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ValueType
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from study import config as c
from study.records.location import ENVIRONMENT, check_storage, has_password, without_password

CONF_DIR = Path(__file__).resolve().parent.parent / "conf"
CONFIG_NAME = "study"
YAML_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The one in C, where PyYAML was built with it: a sweep writes the configuration of every run."""
EARLY_STOPPING = "experiment.early_stopping"
MODES = ("experiment.ablate", "experiment.best", "experiment.refine")

SCHEMAS: dict[tuple[str | None, str], type] = {
    (None, "schema_study"): c.StudyConfig,
    ("model", "schema_model"): c.ModelConfig,
    ("method", "schema_full"): c.FullMethod,
    ("method", "schema_lora"): c.LoraMethod,
    ("task", "schema_arithmetic"): c.ArithmeticTaskConfig,
    ("task", "schema_reasoning_gym"): c.ReasoningGymTaskConfig,
    ("objective", "schema_grpo"): c.GrpoObjective,
    ("objective", "schema_sft"): c.SftObjective,
    ("engine", "schema_engine"): c.EngineConfig,
    ("space", "schema_space"): c.SpaceConfig,
    ("probes", "schema_probes"): c.ProbesConfig,
    ("tracker", "schema_tracker"): c.TrackerConfig,
}


def register_schemas() -> None:
    """Tell Hydra which dataclass each config group is checked against."""
    store = ConfigStore.instance()
    for (group, name), schema in SCHEMAS.items():
        store.store(group=group, name=name, node=schema)


def to_dataclasses(config: DictConfig) -> c.StudyConfig:
    """The composed config as plain dataclasses, every law checked.

    Raises:
        ValueError: one sentence naming the key or the law.
    """
    with user_errors():
        plain = OmegaConf.to_object(config)
    assert isinstance(plain, c.StudyConfig)
    _refuse_added_keys(plain)
    _check_storage(config, plain)
    return plain


def _check_storage(config: DictConfig, plain: c.StudyConfig) -> None:
    """Only an interpolation may bring a password: overrides are seen in process lists and kept in
    the job files of clusters.
    """
    if plain.storage is None:
        return
    check_storage(plain.storage, plain.workers)
    raw = OmegaConf.to_container(config, resolve=False)
    assert isinstance(raw, dict)
    if has_password(str(raw["storage"])):
        raise ValueError(
            f"storage must not name a password; set {ENVIRONMENT}, got "
            f"{without_password(plain.storage)} with one"
        )


def compose(overrides: Sequence[str]) -> c.StudyConfig:
    """Compose ``conf/study.yaml`` with ``overrides``, as the command line would.

    Raises:
        ValueError: one sentence for an unknown key or option, a wrong type or a broken law.
    """
    check_experiment_keys(overrides)
    check_experiment_launcher(overrides)
    return to_dataclasses(_composed(overrides))


def default_values(overrides: Sequence[str]) -> dict[str, Any]:
    """What ``conf/`` says under ``overrides``, as nested dictionaries; ``???`` where nothing.

    Raises:
        ValueError: as for :func:`compose`, except that no law is checked.
    """
    with user_errors():
        values = OmegaConf.to_container(_composed(overrides), resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def _composed(overrides: Sequence[str]) -> DictConfig:
    with user_errors():
        if GlobalHydra.instance().is_initialized():
            return hydra.compose(CONFIG_NAME, overrides=list(overrides))
        register_schemas()
        with hydra.initialize_config_dir(str(CONF_DIR), version_base="1.3"):
            return hydra.compose(CONFIG_NAME, overrides=list(overrides))


def override_key(override: str) -> str:
    """The config key that an override such as ``+a.b=1`` is about."""
    return override.partition("=")[0].lstrip("+~")


def check_experiment_keys(overrides: Sequence[str]) -> None:
    """Refuse ``experiment.KEY=`` where no experiment was chosen, or a key of a search mode that its
    file does not choose, on which Hydra fails an assertion; and early stopping by command line,
    which would take an experiment its question.

    Raises:
        ValueError: naming the override.
    """
    _check_modes(overrides)
    keys = [override_key(override) for override in overrides]
    orphans = [key for key in keys if key.startswith("experiment.")]
    if orphans and "experiment" not in keys:
        raise ValueError(f"{orphans[0]} needs experiment=NAME")
    for override, key in zip(overrides, keys, strict=True):
        if key.startswith(EARLY_STOPPING) and override != f"{EARLY_STOPPING}=null":
            raise ValueError(
                f"{EARLY_STOPPING} is set in the experiment's file alone (=null switches it off), "
                "since no curve, ratio or claim is judged from a search that was cut short, got "
                f"{override!r}"
            )


def _check_modes(overrides: Sequence[str]) -> None:
    set_here = [(k, m) for k in map(override_key, overrides) for m in MODES if k.startswith(m)]
    for _, path in _experiment_files(overrides) if set_here else ():
        chosen = OmegaConf.load(path)
        for key, mode in set_here:
            if OmegaConf.select(chosen, mode) is None:
                raise ValueError(
                    f"{key} needs a block {mode.partition('.')[2]} in {path.name}: a search mode "
                    "is chosen by the experiment's file alone"
                )


def _experiment_files(overrides: Sequence[str]) -> Iterator[tuple[str, Path]]:
    for override in overrides:
        path = CONF_DIR / "experiment" / f"{override.partition('=')[2]}.yaml"
        if override_key(override) == "experiment" and path.is_file():
            yield override, path


def check_experiment_launcher(overrides: Sequence[str]) -> None:
    """Refuse an experiment whose defaults choose a launcher, which Hydra would pass over.

    Raises:
        ValueError: naming the experiment and the command-line override that has an effect.
    """
    for override, path in _experiment_files(overrides):
        defaults = OmegaConf.select(OmegaConf.load(path), "defaults", default=[])
        for choice in (d for d in defaults if OmegaConf.is_dict(d)):
            for key, value in choice.items():
                group = str(key).split()[-1].lstrip("/")
                if group.startswith("hydra/"):
                    raise ValueError(
                        f"{override}: an experiment's file cannot choose {group}, which Hydra "
                        f"would pass over; give {group}={value} on the command line"
                    )


def split_sweeps(overrides: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Separate fixed overrides from comma-separated ones.

    Returns:
        The fixed overrides, and for each swept key its values as override strings.

    Raises:
        ValueError: for a malformed override, or a sweep that is not a list of values.
    """
    fixed: list[str] = []
    swept: dict[str, list[str]] = {}
    with user_errors():
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    for override in parsed:
        if not override.is_sweep_override():
            assert override.input_line is not None
            fixed.append(override.input_line)
        elif override.is_discrete_sweep() and override.value_type != ValueType.GLOB_CHOICE_SWEEP:
            swept[override.get_key_element()] = [str(v) for v in override.sweep_string_iterator()]
        else:
            raise ValueError(
                f"sweeps are lists of values (key=1,2,3), got {override.input_line!r}; "
                "a continuous range or a glob has no meaning in a grid"
            )
    return fixed, swept


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn Hydra's and OmegaConf's exceptions into one-sentence ``ValueError``s."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(one_sentence(error)) from error


def one_sentence(error: BaseException) -> str:
    """What a Hydra or OmegaConf exception says, in one sentence with a near key as a hint."""
    if isinstance(error, OverrideParseException):  # its own text may quote a password
        key = override_key(error.override)
        return (
            f"{key}: Hydra cannot read this override; write KEY=VALUE, and a value with '=', "
            f"quotes or brackets in it twice quoted, \"{key}='VALUE'\""
        )
    text = "\n".join(str(e) for e in (error, error.__cause__) if e is not None)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    option = re.search(
        r"Could not find '([^']+)'\s+Available options in '[^']+':((?:\s+\S+)+)", text
    )
    if option:
        return _unknown_option(option.group(1), option.group(2).split("Config search")[0].split())
    unknown = re.search(r"Key '([^']+)' (?:is not in struct|not in '(\w+)')", text)
    shown = re.search(r"(?:Could not override '|full_key: )([\w.]+)", text)
    if unknown:
        whole = _whole_key(shown.group(1) if shown else "", unknown.group(1))
        return _unknown_key(whole, unknown.group(2))
    unset = re.search(r"Environment variable '([^']+)' not found", text)
    if unset:
        where = f"{shown.group(1)}: " if shown else ""
        return f"{where}the environment variable {unset.group(1)} is not set"
    if "issing mandatory value" in text and shown:
        return f"{shown.group(1)} must be set"
    nothing = re.search(r"field '([\w.]+)' is not Optional", text)
    if nothing:
        return f"{nothing.group(1)} must have a value, got null"
    deleted = re.search(r"override ~([\w.]+)|required keyword-only arguments?: '(\w+)'", text)
    if deleted:
        return f"{deleted.group(1) or deleted.group(2)} must be set: it cannot be taken out"
    wrong = next((x for x in lines if x.startswith("Value ")), None)
    if wrong:
        return f"{shown.group(1)}: {wrong}" if shown else wrong
    return lines[0] if lines else type(error).__name__


def _whole_key(shown: str, unknown: str) -> str:
    """A key inside an override's value, as in ``a={b: 1}``, is shown without the override's own."""
    return shown if shown.endswith(unknown) else f"{shown}.{unknown}".lstrip(".")


def _unknown_option(path: str, options: list[str]) -> str:
    known = [o for o in options if not o.startswith("schema_")]
    group, _, name = path.rpartition("/")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{group} must be one of {', '.join(known)}, got {name!r}{hint}"


def _unknown_key(key: str, owner: str | None) -> str:
    schemas = [s for s in vars(c).values() if isinstance(s, type) and s.__name__ == owner]
    schemas = schemas or [s for s in SCHEMAS.values() if owner is None]
    known = sorted({f.name for schema in schemas for f in dataclasses.fields(schema)})
    near = difflib.get_close_matches(key.rsplit(".", 1)[-1], known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{key} is not a key of {owner or 'the configuration'}{hint}"


def _refuse_added_keys(node: Any, prefix: str = "") -> None:
    """``+method.rnak=3`` gets past Hydra; a key that nobody reads must not get past us."""
    known = {f.name for f in dataclasses.fields(node)}
    for name, value in vars(node).items():
        if name not in known:
            raise ValueError(_unknown_key(prefix + name, type(node).__name__))
        if dataclasses.is_dataclass(value):
            _refuse_added_keys(value, f"{prefix}{name}.")


def to_yaml(config: Any) -> str:
    """A dataclass of :mod:`study.config` as YAML."""
    return yaml.dump(dataclasses.asdict(config), Dumper=YAML_DUMPER, sort_keys=False)
