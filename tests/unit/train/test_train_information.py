"""Bits of groups of rewards, worked by hand."""

import math

import pytest

from study.train.information import reward_bits

CORRECTION = 1 / (2 * math.log(2))  # bits of a group of two outcomes, whatever its size


def test_equal_rewards_tell_nothing():
    assert reward_bits([[1.0] * 8, [0.0] * 8]) == 0.0


def test_a_group_of_two_outcomes():
    # H(1/8) = 1/8 log2 8 + 7/8 log2 (8/7) = 0.5436 bits an episode.
    bits = 8 * (0.125 * 3 + 0.875 * math.log2(8 / 7))
    assert bits == pytest.approx(4.3485, abs=1e-4)
    assert reward_bits([[1.0] + [0.0] * 7]) == pytest.approx(bits + CORRECTION)
    assert reward_bits([[0.0] * 7 + [1.0], [0.0] * 8]) == pytest.approx(bits + CORRECTION)


def test_a_group_of_three_outcomes():
    # H(1/4, 1/4, 1/2) = 1.5 bits; two degrees of freedom; the cap is log2 3 = 1.585.
    group = [0.0, 1.0, 2.0, 2.0] * 10
    assert reward_bits([group]) == pytest.approx(40 * 1.5 + 2 * CORRECTION)


def test_an_episode_tells_at_most_log2_of_the_number_of_rewards():
    half = [0.0, 1.0] * 4
    assert reward_bits([half]) == 8.0  # 8 x 1 + 0.72 without the cap
    # A third reward in the batch raises the cap for every group.
    assert reward_bits([half, [2.0] * 8]) == pytest.approx(8 + CORRECTION)
    assert reward_bits([[0.0, 1.0, 2.0]]) == pytest.approx(3 * math.log2(3))


def test_the_correction_removes_most_of_the_bias():
    """Over all 2^8 groups of 8 fair coins, the plug-in loses 8 % of a bit, what is left 1 %.

    The cap is kept out of it by a group that holds other rewards.
    """
    other = [[2.0, 3.0, 4.0, 5.0]]
    own = reward_bits([[0.0] * 8, [1.0] * 8, *other])
    groups = [[float(n >> i & 1) for i in range(8)] for n in range(256)]
    mean = sum(reward_bits([group, *other]) - own for group in groups) / 256 / 8
    assert mean == pytest.approx(1.0, abs=0.02)


def test_nothing_is_nothing():
    assert reward_bits([]) == 0.0
