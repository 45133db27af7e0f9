"""What probes cost, and that they are no part of a run."""

from __future__ import annotations

from typing import Any

import pytest

from study.config import ProbesConfig, run_config_from_dict
from study.plan.arms import Arm
from study.plan.experiment import planned_run
from study.plan.probing import decompositions, probe_seconds, probes_line
from tests import plans

DEFAULT = ProbesConfig(name="default", draws=2)


def arm(name: str = "full", **changes: Any) -> Arm:
    method = plans.full() if name == "full" else plans.lora()
    return plans.arm(name, plans.run_config(method, **{"save": "last", **changes}), [1e-3])


def test_decompositions_are_counted() -> None:
    """The matrix, the update's values and its sum; twice its values for the random ones; and of
    each draw the sum, of one kind its values too.
    """
    assert decompositions(2) == 3 + 2 + 2 * (2 + 1)


def test_seconds_follow_from_shapes() -> None:
    """Per block 4 matrices of 8 x 8 and 3 of 8 x 16: 22 x (4 x 512 + 3 x 1024) FLOPs."""
    flops = 2 * 22 * (4 * 8 * 8 * 8 + 3 * 8 * 8 * 16)
    assert probe_seconds(arm(probes=DEFAULT)) == pytest.approx(11 * (14 * 2e-3 + flops / 2e10))
    assert probe_seconds(arm()) == 0
    assert probe_seconds(arm(probes=DEFAULT, save="none")) == 0


def test_a_launch_says_what_they_cost() -> None:
    line = probes_line([arm(probes=DEFAULT), arm("lora-r1", probes=DEFAULT)])
    assert line == "probes: default, about 0.31 s a run on one core (2 random updates of each kind)"
    assert probes_line([arm()]) == ""


def test_without_weights_a_launch_says_that_nothing_is_measured() -> None:
    bare = arm("lora-r1", probes=DEFAULT, save="none")
    assert probes_line([bare]) == (
        "probes=default measures the weights that a run keeps: with save=none nothing is measured"
    )
    assert probes_line([arm(probes=DEFAULT), bare]).endswith("; none for lora-r1, with save=none")


def test_run_ids_know_nothing_of_probes() -> None:
    ids = {planned_run(arm(probes=p), "search", 1e-3, 0).run_id for p in (ProbesConfig(), DEFAULT)}
    assert len(ids) == 1


def test_plans_that_are_older_have_none() -> None:
    from dataclasses import asdict

    data = asdict(plans.run_config(probes=DEFAULT))
    assert run_config_from_dict(data).probes == DEFAULT
    del data["probes"]
    assert run_config_from_dict(data).probes == ProbesConfig()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "some", "draws": 2}, "probes.name must be one of none, default, full"),
        ({"name": "full", "draws": 1}, "probes.draws >= 2 must hold, since a range needs two"),
        ({"name": "none", "draws": 5}, "probes.draws is not read under probes=none, got 5"),
    ],
)
def test_laws(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProbesConfig(**settings)
