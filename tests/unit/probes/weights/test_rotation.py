"""Principal angles between subspaces."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from study.probes.weights.rotation import principal_angles


def orthonormal(n, k, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(n, k, generator=generator, dtype=torch.float64))[0]


@pytest.mark.parametrize("degrees", [0.0, 1e-9, 1e-3, 30.0, 44.9, 45.1, 89.999, 90.0])
def test_a_known_rotation_is_found(degrees):
    """Of span(e0, e1), e1 is turned towards e2 by the angle and e0 stays."""
    angle = math.radians(degrees)
    basis = torch.eye(5, dtype=torch.float64)
    turned = torch.stack(
        [basis[:, 0], math.cos(angle) * basis[:, 1] + math.sin(angle) * basis[:, 2]], dim=1
    )
    mixed = turned @ orthonormal(2, 2, seed=0)  # the subspace counts, not its basis
    found = principal_angles(basis[:, :2], mixed)
    assert found.tolist() == pytest.approx([0.0, degrees], rel=1e-6, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_random_subspaces_agree_with_scipy(seed):
    first, second = orthonormal(12, 4, seed), orthonormal(12, 4, seed + 100)
    expected = np.rad2deg(np.sort(scipy.linalg.subspace_angles(first.numpy(), second.numpy())))
    np.testing.assert_allclose(principal_angles(first, second).numpy(), expected, rtol=1e-10)


def test_close_subspaces_agree_with_scipy():
    first = orthonormal(12, 4, seed=0)
    second = torch.linalg.qr(first + 1e-7 * orthonormal(12, 4, seed=1))[0]
    expected = np.rad2deg(np.sort(scipy.linalg.subspace_angles(first.numpy(), second.numpy())))
    np.testing.assert_allclose(principal_angles(first, second).numpy(), expected, rtol=1e-6)


def test_subspaces_of_different_size_are_refused():
    with pytest.raises(ValueError, match=r"equal shape .* \(6, 2\) and \(6, 3\)"):
        principal_angles(orthonormal(6, 2, 0), orthonormal(6, 3, 0))
