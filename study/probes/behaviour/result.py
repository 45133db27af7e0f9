"""What is measured of a stored run's behaviour: :func:`measure_behaviour`.

From the outside in:

* ``settings``, and ``seed``, ``temperature``, ``max_tokens`` of sampling: the run's own. Base and
  tuned model draw from the same seeds; the base is drawn anew for every run, so that an interval
  over runs holds the noise of its samples too.
* ``prompt_ids``: of the task's report prompts, which no run trains on.
* ``base`` and ``tuned``, each: ``correct``, the right samples of every prompt; ``distinct``, the
  distinct answers of every prompt; ``answer_entropy``, of every prompt in nats, corrected after
  Miller and Madow; ``pass_at_k`` by k = 1, 2, 4, ..., mean over prompts; ``token_entropy``, mean
  over the tokens of scored own samples in nats.
* ``crossover``: the smallest k from which on the base stays above; null if it never does.
* ``answers``: ``prompt``, right ``answer`` and counts of answers of ``base`` and ``tuned``, of a
  few prompts.
* ``forward_kl``: KL(base || tuned) on scored samples of the base, exact at every token:
  ``per_token`` and ``per_sequence`` in nats; ``sequences`` and ``tokens`` behind them.
* ``families``: accuracy of ``base`` and ``tuned`` on every arithmetic family that was not trained;
  empty for other tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from study.config import ArithmeticTaskConfig
from study.probes.behaviour.counts import crossover, doublings, entropy, mean_pass_at_k
from study.probes.behaviour.divergence import forward_kl, token_entropy
from study.probes.behaviour.models import base_model, tuned_model
from study.probes.behaviour.sampling import Drawn, Sampling, completion_logits, draw
from study.probes.behaviour.settings import BehaviourSettings
from study.probes.settings import Told
from study.probes.stored import StoredRun
from study.tasks.arithmetic import ArithmeticTask, stated_answer
from study.tasks.base import Problem, Task
from study.tasks.families import FAMILIES
from study.tasks.loading import load_task
from study.train.models import end_token_ids, load_tokenizer
from study.train.rewards import Scorer


@dataclass(frozen=True)
class _Sampled:
    """One model's samples of the problems of a task."""

    drawn: list[list[Drawn]]
    answers: list[list[str]]
    """Per problem, one for each sample."""
    correct: list[int]
    """Per problem."""

    def facts(self, samples: int) -> dict[str, Any]:
        counts = [list(Counter(answers).values()) for answers in self.answers]
        return {
            "correct": self.correct,
            "distinct": [len(found) for found in counts],
            "answer_entropy": [entropy(found) for found in counts],
            "pass_at_k": {
                str(k): mean_pass_at_k(samples, self.correct, k) for k in doublings(samples)
            },
        }


class _Measurer:
    """Draws from one run's base and tuned model."""

    def __init__(self, run: StoredRun, settings: BehaviourSettings, told: Told) -> None:
        self._settings, self._told = settings, told
        self.task = load_task(run.config.task)
        self.problems = self.task.problems("report", settings.prompts)
        self.families = other_families(run)
        self.models = {"base": base_model(run), "tuned": tuned_model(run)}
        self._tokenizer = load_tokenizer(run.config.model)
        self.how = Sampling(
            length=run.config.task.max_completion_length,
            temperature=run.config.objective.temperature,
            end=end_token_ids(self.models["base"], self._tokenizer),
            seed=run.config.seed,
            batch_size=run.config.evaluation.eval_batch_size,
        )

    def alive(self, what: str) -> Callable[[], None]:
        return partial(self._told, what, False)

    def sample(self, name: str, task: Task, problems: Sequence[Problem], samples: int) -> _Sampled:
        what, model = f"{name}: {task.name}", self.models[name]
        drawn = draw(model, self._tokenizer, problems, samples, self.how, self.alive(what))
        texts = [self._decode(own) for own in drawn]
        scorer = Scorer(task)
        correct = [
            sum(score.correct for score in scorer([problem] * samples, own))
            for problem, own in zip(problems, texts, strict=True)
        ]
        answers = [[answer_of(task, text) for text in own] for own in texts]
        return _Sampled(drawn, answers, correct)

    def _decode(self, drawn: Sequence[Drawn]) -> list[str]:
        ids = [one.completion for one in drawn]
        texts: list[str] = self._tokenizer.batch_decode(ids, skip_special_tokens=True)
        return texts

    def scored(self, sampled: _Sampled) -> list[Drawn]:
        return [one for own in sampled.drawn for one in own[: self._settings.scored]]

    def token_entropy(self, name: str, drawn: Sequence[Drawn]) -> float:
        batches = completion_logits(self.models[name], drawn, self.alive(f"{name}: entropy"))
        total = sum(float(token_entropy(x, self.how.temperature).sum()) for x in batches)
        return total / _tokens(drawn)

    def forward_kl(self, drawn: Sequence[Drawn]) -> dict[str, Any]:
        alive = self.alive("KL(base || tuned)")
        base, tuned = (completion_logits(self.models[n], drawn, alive) for n in ("base", "tuned"))
        pairs = zip(base, tuned, strict=True)
        total = sum(float(forward_kl(p, q, self.how.temperature).sum()) for p, q in pairs)
        sequences, tokens = len(drawn), _tokens(drawn)
        means = {"per_token": total / tokens, "per_sequence": total / sequences}
        return {**means, "sequences": sequences, "tokens": tokens}

    def accuracy(self, family: str) -> dict[str, float]:
        task, samples = ArithmeticTask(family), self._settings.family_samples
        problems = task.problems("report", self._settings.prompts)
        correct = {n: self.sample(n, task, problems, samples).correct for n in self.models}
        return {n: sum(own) / (samples * len(problems)) for n, own in correct.items()}


def measure_behaviour(run: StoredRun, settings: BehaviourSettings, told: Told) -> dict[str, Any]:
    """Measure a stored run.

    Args:
        run: The run.
        settings: Numbers of prompts and samples.
        told: Told of every batch as a sign of life, and once when all is done.

    Returns:
        What the module says, ready for JSON.

    Raises:
        ValueError: If the run kept no weights, its base has changed since, or the task has fewer
            report prompts than are asked for.
    """
    measurer = _Measurer(run, settings, told)
    sampled = {
        name: measurer.sample(name, measurer.task, measurer.problems, settings.samples)
        for name in measurer.models
    }
    facts = {name: own.facts(settings.samples) for name, own in sampled.items()}
    for name, own in facts.items():
        own["token_entropy"] = measurer.token_entropy(name, measurer.scored(sampled[name]))
    curves = [{int(k): v for k, v in facts[n]["pass_at_k"].items()} for n in ("base", "tuned")]
    found = {
        **_sampling_facts(measurer.how, settings),
        "prompt_ids": [problem.prompt_id for problem in measurer.problems],
        **facts,
        "crossover": crossover(*curves),
        "answers": _answers(measurer.problems[: settings.shown], sampled),
        "forward_kl": measurer.forward_kl(measurer.scored(sampled["base"])),
        "families": {family: measurer.accuracy(family) for family in measurer.families},
    }
    told("behaviour", True)
    return found


def other_families(run: StoredRun) -> list[str]:
    """The arithmetic families that a run did not train on; none if its task is another."""
    task = run.config.task
    if not isinstance(task, ArithmeticTaskConfig):
        return []
    return [name for name in FAMILIES if name != task.family]


def answer_of(task: Task, completion: str) -> str:
    """What a completion answers: of arithmetic the stated answer, else all of its text."""
    return stated_answer(completion) if isinstance(task, ArithmeticTask) else completion.strip()


def _sampling_facts(how: Sampling, settings: BehaviourSettings) -> dict[str, Any]:
    own = {"seed": how.seed, "temperature": how.temperature, "max_tokens": how.length}
    return {"settings": asdict(settings), **own}


def _answers(problems: Sequence[Problem], sampled: dict[str, _Sampled]) -> list[dict[str, Any]]:
    return [
        {
            "prompt": problem.prompt,
            "answer": problem.answer,
            **{name: dict(Counter(own.answers[i]).most_common()) for name, own in sampled.items()},
        }
        for i, problem in enumerate(problems)
    ]


def _tokens(drawn: Sequence[Drawn]) -> int:
    return sum(len(one.completion) for one in drawn)
