"""pass@k, crossover and entropy, by hand."""

import math
from itertools import combinations

import pytest

from study.probes.behaviour.counts import (
    crossover,
    doublings,
    entropy,
    mean_pass_at_k,
    pass_at_k,
)


@pytest.mark.parametrize("samples", [1, 4, 7])
def test_pass_at_k_is_the_share_of_subsets_with_a_right_sample(samples):
    for correct in range(samples + 1):
        right = [i < correct for i in range(samples)]
        for k in range(1, samples + 1):
            subsets = list(combinations(right, k))
            share = sum(map(any, subsets)) / len(subsets)
            assert pass_at_k(samples, correct, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_is_unbiased_for_binomial_counts():
    n, k, p = 10, 4, 0.15
    chances = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    mean = sum(chance * pass_at_k(n, c, k) for c, chance in enumerate(chances))
    assert mean == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


def test_pass_at_k_of_many_samples_is_the_quotient_of_exact_binomials():
    exact = 1 - math.comb(9990, 500) / math.comb(10000, 500)
    assert pass_at_k(10000, 10, 500) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("wrong", [(4, 1, 5), (4, 1, 0), (4, 5, 1), (4, -1, 1)])
def test_pass_at_k_refuses_more_tries_than_samples(wrong):
    with pytest.raises(ValueError, match="must hold"):
        pass_at_k(*wrong)


def test_mean_is_over_prompts():
    assert mean_pass_at_k(2, [0, 1, 2], 1) == pytest.approx(0.5)
    assert mean_pass_at_k(2, [0, 1, 2], 2) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="at least one prompt"):
        mean_pass_at_k(2, [], 1)


def test_doublings_end_with_all_samples():
    assert [doublings(n) for n in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


@pytest.mark.parametrize(
    ("base", "tuned", "found"),
    [
        ([1, 4, 9], [2, 3, 8], 2),
        ([1, 4, 7], [2, 3, 8], None),  # above once, and below again
        ([1, 2, 8], [2, 3, 8], None),  # reached, not overtaken
        ([3, 4, 9], [2, 3, 8], None),  # never below
    ],
)
def test_crossover_is_where_the_base_stays_above(base, tuned, found):
    ks = (1, 2, 4)
    curves = (dict(zip(ks, values, strict=True)) for values in (base, tuned))
    assert crossover(*curves) == found


def test_crossover_refuses_curves_of_other_tries():
    with pytest.raises(ValueError, match="the same k"):
        crossover({1: 0.0}, {2: 0.0})


def test_entropy_is_corrected_for_the_answers_that_samples_miss():
    assert entropy([5]) == 0
    assert entropy([1, 3]) == pytest.approx(0.25 * math.log(4) + 0.75 * math.log(4 / 3) + 1 / 8)
    assert entropy([1, 1, 1]) == math.log(3)  # capped


def test_entropy_refuses_answers_nobody_gave():
    with pytest.raises(ValueError, match="at least 1"):
        entropy([0, 2])
