"""The file ``probes.json`` of a run, schema version 2.

``run_id`` and an object for every part that was asked for:

* ``weights``: what training did to the weights; see :mod:`study.probes.weights.result`.
* ``behaviour``: what the model does otherwise than its base; :mod:`study.probes.behaviour.result`.

At the end of a run, ``seconds`` that it took are added. In place of its content a part has
``left_out``, the reason why the run cannot be measured (it kept no weights), or ``failed``, the
error that ended the measurement of a run whose result stands.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from study.config import ProbesConfig
from study.probes.behaviour.result import measure_behaviour
from study.probes.behaviour.settings import BehaviourSettings
from study.probes.settings import Settings, Told
from study.probes.stored import StoredRun, unmeasurable
from study.probes.weights.pairs import Bases, tensor_count
from study.probes.weights.result import measure_weights
from study.records.files import is_disk_full, read_text, write_json

SCHEMA_VERSION = 2
FILE = "probes.json"
UNFINISHED = "the process ended before it was measured"
Measure = Callable[[StoredRun, Settings, Told], dict[str, Any]]


class Prober:
    """Measures stored runs; base models are opened and checked once for all of them."""

    def __init__(self, behaviour: BehaviourSettings | None = None) -> None:
        """Opens nothing yet.

        Args:
            behaviour: How much is sampled from base and tuned model; None: weights alone.
        """
        self._bases, self._behaviour = Bases(), behaviour

    def probe(self, run: StoredRun, settings: Settings, told: Told) -> dict[str, Any]:
        """Measure a run and write its file; parts that are not asked for keep what they have.

        Raises:
            ValueError: If the stored weights are not those that the record describes.
        """
        found = {name: part(run, settings, told) for name, part in self._parts().items()}
        return _written(run, found)

    def probe_result(self, run: StoredRun, config: ProbesConfig, told: Told) -> None:
        """The same for a run that has just ended: whatever goes wrong is written, never raised.

        Raises:
            OSError: If the file cannot be written.
        """
        settings, reason = Settings(draws=config.draws), unmeasurable(run)
        if not reason:  # should a machine die of it, the file says so
            _written(run, {name: {"failed": UNFINISHED} for name in self._parts()})
        for name, part in self._parts().items():
            found = {"left_out": reason} if reason else _tried(part, run, settings, told)
            _written(run, {name: found})

    def steps(self, run: StoredRun) -> int:
        """Of how many things :meth:`probe` tells that they are done."""
        return tensor_count(run) + (self._behaviour is not None)

    def _parts(self) -> Mapping[str, Measure]:
        asked = self._behaviour
        if asked is None:
            return {"weights": self._weights}
        return {
            "weights": self._weights,
            "behaviour": lambda run, _, told: measure_behaviour(run, asked, told),
        }

    def _weights(self, run: StoredRun, settings: Settings, told: Told) -> dict[str, Any]:
        # Random updates of a run's own: those of one arm's seeds are independent, as its interval
        # over seeds takes them to be.
        own = replace(settings, seed=run.config.seed)
        return measure_weights(run, self._bases.of(run), own, told)


def _tried(part: Measure, run: StoredRun, settings: Settings, told: Told) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        found = part(run, settings, told)
        json.dumps(found, allow_nan=False)
        return {**found, "seconds": time.perf_counter() - began}
    except Exception as error:  # the boundary of a probe: the result of the run must not be lost
        if is_disk_full(error):
            raise
        return {"failed": " ".join(f"{type(error).__name__}: {error}".split())}


def _written(run: StoredRun, found: Mapping[str, Any]) -> dict[str, Any]:
    facts = {"schema_version": SCHEMA_VERSION, "run_id": run.record.run_id}
    whole = {**_others(run), **facts, **found}
    write_json(run.path / FILE, whole)
    return whole


def _others(run: StoredRun) -> dict[str, Any]:
    """What the file has already, if it is one of this version."""
    try:
        known = json.loads(read_text(run.path / FILE) or "{}")
    except ValueError:
        return {}
    same = isinstance(known, dict) and known.get("schema_version") == SCHEMA_VERSION
    return dict(known) if same else {}
