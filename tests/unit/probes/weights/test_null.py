"""Random updates of a given norm."""

import math

import pytest
import torch

from study.probes.settings import Settings, range_coverage
from study.probes.weights.null import NULLS, Range, null_range, random_updates
from study.probes.weights.spectrum import spectral_shift

NAMES = list(NULLS)


def gaussian(rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("shape", [(6, 9), (9, 6)])
def test_every_draw_has_the_norm_of_the_update(kind, shape):
    update = 1e-3 * gaussian(*shape, seed=0)
    norm = float(torch.linalg.matrix_norm(update))
    draws = list(random_updates(kind, update, draws=3, seed=0, name="w"))
    assert [float(torch.linalg.matrix_norm(d)) for d in draws] == pytest.approx([norm] * 3)
    assert not torch.allclose(draws[0], draws[1])


def test_turned_updates_keep_the_singular_values_and_lose_the_directions():
    update = torch.zeros(8, 5, dtype=torch.float64)
    update[0, 0], update[1, 1] = 2.0, 1.0
    corners = []
    for draw in random_updates("turned", update, draws=400, seed=0, name="w"):
        assert torch.linalg.svdvals(draw).tolist() == pytest.approx([2, 1, 0, 0, 0], abs=1e-12)
        corners.append(float(draw[0, 0]))
    # Sum of s_i^2 E[u^2] E[v^2] = 5 / 40, mean 0 by symmetry.
    squares = [c * c for c in corners]
    spread = math.sqrt(sum(s * s for s in squares) / 400 / 400)
    assert sum(squares) / 400 == pytest.approx(5 / 40, abs=4 * spread)
    assert sum(corners) / 400 == pytest.approx(0.0, abs=4 * math.sqrt(5 / 40 / 400))


@pytest.mark.parametrize("kind", NAMES)
def test_no_update_has_no_random_ones_of_its_norm_but_zero(kind):
    (draw,) = random_updates(kind, torch.zeros(3, 2), draws=1, seed=0, name="w")
    assert not draw.any()


def test_draws_are_those_of_seed_and_name():
    def first(seed, name):
        return next(random_updates("gaussian", torch.ones(3, 3), 1, seed, name))

    assert torch.equal(first(0, "a"), first(0, "a"))
    assert not torch.equal(first(0, "a"), first(1, "a"))
    assert not torch.equal(first(0, "a"), first(0, "b"))


@pytest.mark.parametrize("kind", NAMES)
def test_the_null_covers_itself(kind):
    """One more random update lies in the range of 9 others in 8 of 10 cases."""
    before, cases, draws = gaussian(12, 8, seed=0), 250, 9
    values = torch.linalg.svdvals(before)

    def shift(update):
        return spectral_shift(values, torch.linalg.svdvals(before + 0.1 * update))

    inside = 0
    for case in range(cases):
        update = gaussian(12, 8, seed=1000 + case)
        (tested,) = random_updates(kind, update, 1, seed=case, name="tested")
        found = null_range([shift(d) for d in random_updates(kind, tested, draws, case, "w")])
        inside += found.low <= shift(tested) <= found.high
    expected = range_coverage(draws)
    assert expected == 0.8
    deviation = math.sqrt(expected * (1 - expected) / cases)
    assert inside / cases == pytest.approx(expected, abs=3.5 * deviation)


def test_ranges():
    assert null_range([3.0, 1.0, 2.0]) == Range(mean=2.0, low=1.0, high=3.0)
    assert null_range([1.0, None]) is None
    assert range_coverage(19) == pytest.approx(0.9)


def test_a_range_of_one_draw_is_refused():
    with pytest.raises(ValueError, match="draws >= 2 must hold"):
        Settings(draws=1)
