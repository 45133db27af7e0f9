"""Run-steps of both engines in turns, and of packs of growing size."""

from __future__ import annotations

import gc
import importlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from study.bench.cases import EVAL_PROMPTS, Case, layers, make_specs, rewarding, step_cases
from study.bench.floor import Work, floor_seconds, phases
from study.bench.spread import spread
from study.bench.tables import times_with_spread
from study.bench.watch import Sample, Stopwatch
from study.sweep.work.child import ENGINES
from study.train.engine import Engine, RunSpec

LANES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long is measured."""

    rounds: int
    """Measurements of each engine."""
    steps: int
    """Steps that are timed."""
    warm_up: int
    """Steps before them."""
    eval_prompts: int = EVAL_PROMPTS


SHORT = Effort(rounds=1, steps=1, warm_up=1, eval_prompts=32)


@dataclass(frozen=True, kw_only=True)
class Round:
    """Both engines, one right after the other."""

    trl: Sample
    packed: Sample
    floor_s: float
    """Of a run-step, in busy time."""
    gemm_flops: float
    """FLOP/s of the training pass's matrix products."""

    @property
    def ratio(self) -> float:
        """How many times longer a run-step takes under ``trl``, in wall time."""
        return self.trl.step_s / self.packed.step_s

    @property
    def busy_ratio(self) -> float:
        """The same in busy time."""
        return self.trl.step_busy_s / self.packed.step_busy_s

    @property
    def evaluation_ratio(self) -> float:
        """How many times longer a run's evaluation takes under ``trl``."""
        return self.trl.evaluation_s / self.packed.evaluation_s


def measure_steps(effort: Effort, console: Console) -> list[dict[str, Any]]:
    """The paired measurement of every case; see :mod:`study.bench` for its keys.

    Raises:
        RuntimeError: if a run fails or does not complete.
    """
    found = []
    with console.status("warming up"), specs_of(step_cases()[0], SHORT) as specs:
        measure_round(step_cases()[0], specs, SHORT, 0)  # or the first to run would pay for both
    for case in step_cases():
        with console.status(f"steps: {case.label}"), specs_of(case, effort) as specs:
            rounds = [measure_round(case, specs, effort, number) for number in range(effort.rounds)]
        found.append({**describe_case(case, specs[0]), **summary(rounds)})
        console.print(f"{case.label}: {times_with_spread(found[-1]['ratio'])}")
    return found


def measure_round(case: Case, specs: Sequence[RunSpec], effort: Effort, number: int) -> Round:
    """TRL trains one run of the pack, another in each round, and then the pack is trained."""
    trl = run("trl", [specs[number % len(specs)]], effort.warm_up)
    packed = run("packed", specs, effort.warm_up)
    floor_s, gemm_flops = _floor(case, specs[0], packed)
    return Round(trl=trl, packed=packed, floor_s=floor_s, gemm_flops=gemm_flops)


def _floor(case: Case, spec: RunSpec, sample: Sample) -> tuple[float, float]:
    work = Work(
        prompts=case.prompts,
        rows=case.rows,
        prompt_tokens=spec.model.max_prompt_tokens,
        completion_tokens=sample.completion_tokens,
        longest=spec.config.task.max_completion_length,
        unequal_share=sample.unequal_share,
    )
    return floor_seconds(phases(work, spec.config.method, spec.target_modules, spec.model))


def run(engine: str, specs: Sequence[RunSpec], warm_up: int) -> Sample:
    """Train runs together under an engine, and say how long it took.

    Raises:
        RuntimeError: if a run does not complete.
    """
    train: Engine = importlib.import_module(ENGINES[engine]).train
    gc.collect()  # or the engine would freeze the last measurement's garbage for good
    watch = Stopwatch(len(specs))
    train(specs, watch, lambda: None)
    return watch.sample(warm_up)


@contextmanager
def specs_of(case: Case, effort: Effort) -> Iterator[list[RunSpec]]:
    """The runs of a case, and its reward while they are trained."""
    steps = effort.warm_up + effort.steps
    with tempfile.TemporaryDirectory() as directory, rewarding(case.reward):
        yield make_specs(case, steps, effort.eval_prompts, Path(directory))


def describe_case(case: Case, spec: RunSpec) -> dict[str, Any]:
    """What was measured, as it goes into the JSON file."""
    sizes = {"hidden_size": spec.model.hidden_size, "layers": layers(spec.model)}
    groups = {"prompts": case.prompts, "num_generations": case.num_generations}
    return {**asdict(case), **sizes, **groups}


def summary(rounds: Sequence[Round]) -> dict[str, Any]:
    """Rounds and the spreads over them."""
    spreads = {
        "ratio": spread(r.ratio for r in rounds),
        "busy_ratio": spread(r.busy_ratio for r in rounds),
        "evaluation_ratio": spread(r.evaluation_ratio for r in rounds),
        "floor_share": spread(r.floor_s / r.packed.step_busy_s for r in rounds),
        "trl_floor_share": spread(r.floor_s / r.trl.step_busy_s for r in rounds),
        "gemm_flops": spread(r.gemm_flops for r in rounds),
    }
    kept = [
        {"trl": asdict(r.trl), "packed": asdict(r.packed), "floor_s": r.floor_s} for r in rounds
    ]
    return {"rounds": kept, **{name: asdict(value) for name, value in spreads.items()}}


def measure_scaling(effort: Effort, console: Console) -> list[dict[str, Any]]:
    """A run-step of packs of 1 to 32 LoRA runs, the sizes in turns; see :mod:`study.bench`.

    Raises:
        RuntimeError: if a run fails or does not complete.
    """
    found: list[dict[str, Any]] = []
    for rows in (16, 64):
        case = Case(model="lab64", rows=rows, method="lora", reward="parity", lanes=LANES[-1])
        with console.status(f"scaling: {case.label}"), specs_of(case, effort) as specs:
            rounds = [
                {lanes: run("packed", specs[:lanes], effort.warm_up) for lanes in LANES}
                for _ in range(effort.rounds)
            ]
        found += [
            {**asdict(replace(case, lanes=lanes)), **scaling_summary(rounds, lanes)}
            for lanes in LANES
        ]
    return found


def scaling_summary(rounds: Sequence[Mapping[int, Sample]], lanes: int) -> dict[str, Any]:
    """Spreads of the time of a run-step in a pack of ``lanes``, and of the gain over one lane."""
    here, alone = [one[lanes] for one in rounds], [one[1] for one in rounds]
    pairs = list(zip(alone, here, strict=True))
    spreads = {
        "step_s": spread(x.step_s for x in here),
        "step_busy_s": spread(x.step_busy_s for x in here),
        "speedup": spread(a.step_s / b.step_s for a, b in pairs),
        "busy_speedup": spread(a.step_busy_s / b.step_busy_s for a, b in pairs),
    }
    return {name: asdict(value) for name, value in spreads.items()}
