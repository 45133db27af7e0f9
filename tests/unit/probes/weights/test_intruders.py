"""Intruder dimensions."""

import pytest
import torch
from peft.tuners.lora.intruders import reduce_intruder_dimension

from study.probes.weights.intruders import count_intruders
from study.train.models import load_model
from tests import plans
from tests.unit.probes.stored_runs import LAB, TARGETS, adapted_model


def left_vectors(matrix):
    return torch.linalg.svd(matrix, full_matrices=False)[0]


def planted(strength, direction):
    """Four old left vectors e0 to e3 of singular values 4 to 1, and one more direction."""
    before = torch.zeros(30, 5, dtype=torch.float64)
    before[:4, :4] = torch.diag(torch.tensor([4.0, 3.0, 2.0, 1.0]))
    update = torch.zeros_like(before)
    update[:, 4] = strength * torch.tensor(direction + [0.0] * (30 - len(direction)))
    return left_vectors(before[:, :4]), left_vectors(before + update)[:, :5]


def test_a_planted_direction_is_the_only_intruder():
    before, after = planted(10.0, [0.0] * 9 + [1.0])
    assert count_intruders(before, after) == 1
    assert count_intruders(before, after, top=1) == 1


def test_a_weak_direction_is_no_intruder_among_the_leading_ones():
    before, after = planted(0.5, [0.0] * 9 + [1.0])
    assert count_intruders(before, after, top=4) == 0


def test_an_old_direction_that_grows_is_no_intruder():
    before, after = planted(10.0, [0.0, 1.0])
    assert count_intruders(before, after, top=1) == 0


def test_the_threshold_is_the_cosine_with_the_nearest_old_vector():
    """(e0 + e1 + e2 + e3) / 2 has the cosine 1/2 with each, and is leading at great strength."""
    before, after = planted(1e9, [0.5] * 4)
    assert count_intruders(before, after, top=1, cosine=0.49) == 0
    assert count_intruders(before, after, top=1, cosine=0.51) == 1


@pytest.mark.parametrize("scale", [0.01, 0.2, 1.0])
def test_counts_agree_with_peft(scale):
    model, lines = adapted_model(plans.lora(rank=4), scale), []
    base = load_model(LAB)
    found = []
    for target in TARGETS:
        layer = model.get_submodule(f"base_model.model.{target}")
        before = base.get_submodule(target).weight.detach().double()
        after = before + layer.get_delta_weight("default").detach().double()
        found.append(count_intruders(left_vectors(before), left_vectors(after)))
    reduce_intruder_dimension(model, logging_sink=lines.append)
    peft = [int(line.rpartition(": ")[2]) if "Intruders:" in line else 0 for line in lines[:2]]
    assert found == peft
    assert (found == [0, 0]) == (scale == 0.01)
