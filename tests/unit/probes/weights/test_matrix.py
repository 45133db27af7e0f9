"""Everything that is measured on one matrix."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from study.probes.settings import Settings
from study.probes.weights.matrix import Pair, measure_matrix

SETTINGS = Settings(draws=19, subspace_share=0.1, mask_share=0.1)
ROWS, COLUMNS = 20, 30


def gaussian(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def bases(seed=0):
    left = torch.linalg.qr(gaussian(ROWS, ROWS, seed=seed))[0]
    return left, torch.linalg.qr(gaussian(COLUMNS, ROWS, seed=seed + 1))[0]


def matrix():
    """Singular values 20 to 1 on random vectors: two of twenty directions count as principal."""
    left, right = bases()
    return (left * torch.arange(ROWS, 0, -1, dtype=torch.float64)) @ right.T


def measured(update, before=None):
    before = matrix() if before is None else before
    pair = Pair(name="w", before=before, update=update, fp32_masters=True)
    return measure_matrix(pair, SETTINGS, lambda what, done: None)


def outside(result, name, kind="turned"):
    """-1 or 1: the statistic lies below or above every draw; 0: within."""
    draws = [draw[name] for draw in result.null[kind]]
    value = result.observed[name]
    return -1 if value < min(draws) else 1 if value > max(draws) else 0


def test_a_known_rotation_of_the_left_vectors():
    """W1 = R W0 with R turning u1 towards u3 by 6 degrees: one angle of two, and no shift."""
    left, _ = bases()
    angle = math.radians(6)
    cosine, sine = math.cos(angle) - 1, math.sin(angle)
    turn = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
    plane = left[:, [1, 2]]
    rotation = torch.eye(ROWS, dtype=torch.float64) + plane @ turn @ plane.T
    before = matrix()
    found = measured(rotation @ before - before).observed
    assert found["angle_left_max_deg"] == pytest.approx(6)
    assert found["angle_left_mean_deg"] == pytest.approx(3)
    assert found["angle_right_max_deg"] == pytest.approx(0, abs=1e-6)
    assert found["spectral_shift"] == pytest.approx(0, abs=1e-12)
    assert found["intruders"] == 0


def test_scaling_a_matrix_shifts_its_spectrum_and_turns_nothing():
    result = measured(0.05 * matrix())
    found = result.observed
    assert found["relative_norm"] == pytest.approx(0.05)
    assert found["spectral_shift"] == pytest.approx(0.05)
    assert found["angle_left_max_deg"] == pytest.approx(0, abs=1e-6)
    assert found["angle_right_max_deg"] == pytest.approx(0, abs=1e-6)
    assert outside(result, "spectral_shift") == 1
    assert outside(result, "angle_left_mean_deg") == -1


def test_an_update_of_the_principal_weights_is_told_from_chance():
    """The update is the leading direction itself: its largest entries are the principal ones."""
    left, right = bases()
    result = measured(0.3 * torch.outer(left[:, 0], right[:, 0]))
    assert outside(result, "largest_on_principal") == 1
    assert result.observed["numerical_rank"] == 1
    assert result.observed["energy_top_1"] == pytest.approx(1)


def test_an_update_off_the_principal_directions_is_told_from_chance():
    """The last direction has the smallest singular value, and is orthogonal to the first."""
    left, right = bases()
    result = measured(0.3 * torch.outer(left[:, -1], right[:, -1]))
    assert outside(result, "angle_left_mean_deg") == -1
    assert outside(result, "spectral_shift") == 1  # s_20 grows by 0.3, nothing else moves
    assert result.observed["spectral_shift"] == pytest.approx(
        0.3 / math.sqrt(sum(s * s for s in range(1, ROWS + 1)))
    )


def test_bf16_rounding_alone_favours_small_weights_and_the_null_shows_it():
    """The trap: visible changes seem to avoid large weights although the update is random."""
    result = measured(1e-3 * gaussian(ROWS, COLUMNS, seed=7))
    assert result.observed["visible_on_low"] > 1.2
    assert outside(result, "visible_on_low", "gaussian") == 0
    assert outside(result, "visible_on_principal", "gaussian") == 0
    assert outside(result, "unchanged_bf16", "gaussian") == 0
    assert result.observed["unchanged_fp32"] == 0


def test_no_update_has_counts_and_no_directions():
    found = measured(torch.zeros(ROWS, COLUMNS, dtype=torch.float64)).observed
    assert found["unchanged_fp32"] == found["unchanged_bf16"] == 1
    assert found["relative_norm"] == found["numerical_rank"] == found["spectral_shift"] == 0
    for name in ("stable_rank", "energy_top_1", "visible_on_low", "largest_on_principal"):
        assert found[name] is None


def test_a_zero_matrix_and_a_single_row_are_measured():
    start = torch.zeros(3, 4, dtype=torch.float64)
    found = measured(torch.ones(3, 4, dtype=torch.float64), before=start).observed
    assert found["relative_norm"] is None
    assert found["spectral_shift"] is None
    row = gaussian(1, 6)
    assert measured(0.1 * row, before=row).observed["stable_rank"] == pytest.approx(1)


def bf16_bits(values):
    """Rounding to nearest, ties to even, on the bits of fp32."""
    bits = values.astype(np.float32).view(np.uint32)
    return (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def ratio(update, region):
    return update[region].mean() / update.mean()


def test_the_numbers_agree_with_numpy_and_scipy():
    before, update = matrix().numpy(), 3e-3 * gaussian(ROWS, COLUMNS, seed=5).numpy()
    after, q = before + update, round(0.1 * before.size)
    (u0, s0, v0), (u1, s1, v1) = (np.linalg.svd(w, full_matrices=False) for w in (before, after))
    changed = bf16_bits(before) != bf16_bits(after)
    rebuilt = np.abs((u0[:, :2] * s0[:2]) @ v0[:2])
    principal = rebuilt >= np.sort(rebuilt, axis=None)[-q]
    low = np.abs(before) <= np.sort(np.abs(before), axis=None)[q - 1]
    largest = np.abs(update) >= np.sort(np.abs(update), axis=None)[-q]
    left = np.rad2deg(scipy.linalg.subspace_angles(u0[:, :2], u1[:, :2]))
    right = np.rad2deg(scipy.linalg.subspace_angles(v0[:2].T, v1[:2].T))
    expected = {
        "relative_norm": np.linalg.norm(update) / np.linalg.norm(before),
        "unchanged_bf16": 1 - changed.mean(),
        "numerical_rank": np.linalg.matrix_rank(update.astype(np.float32)),
        "numerical_rank_share": 1.0,
        "stable_rank": (np.linalg.norm(update) / np.linalg.norm(update, 2)) ** 2,
        "angle_left_mean_deg": left.mean(),
        "angle_left_max_deg": left.max(),
        "angle_right_mean_deg": right.mean(),
        "angle_right_max_deg": right.max(),
        "spectral_shift": np.linalg.norm(s1 - s0) / np.linalg.norm(s0),
        "visible_on_principal": ratio(changed, principal),
        "visible_on_low": ratio(changed, low),
        "largest_on_principal": ratio(largest, principal),
        "largest_on_low": ratio(largest, low),
        "intruders": (np.abs(u1[:, :10].T @ u0).max(axis=1) < 0.5).sum(),
    }
    found = measured(torch.from_numpy(update)).observed
    assert {name: found[name] for name in expected} == pytest.approx(expected)
