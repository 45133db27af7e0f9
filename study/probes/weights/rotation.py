"""How far training turned the leading singular subspaces of a matrix."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def principal_angles(first: Tensor, second: Tensor) -> Tensor:
    """Return the principal angles between two subspaces, ascending, in degrees [k].

    cos(angle_i) is the i-th singular value of U0^T U1 (2511.08567, section 4). Its arc cosine loses
    angles below 1e-8, so small ones come from the sines, the singular values of U1 - U0 U0^T U1
    (Bjoerck and Golub 1973; Knyazev and Argentati 2002).

    Args:
        first: Orthonormal columns [n, k], fp64.
        second: Orthonormal columns [n, k], fp64.

    Raises:
        ValueError: If the shapes differ.
    """
    if first.shape != second.shape:
        raise ValueError(
            "two subspaces of equal shape are compared, got bases of shapes "
            f"{tuple(first.shape)} and {tuple(second.shape)}"
        )
    common = first.T @ second
    cosines = torch.linalg.svdvals(common).clamp(max=1.0)
    sines = torch.linalg.svdvals(second - first @ common).clamp(max=1.0).flip(0)
    small = cosines > math.sqrt(0.5)
    return torch.where(small, torch.arcsin(sines), torch.arccos(cosines)).rad2deg()
