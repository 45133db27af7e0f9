"""Everything that is measured on one matrix, of its own update and of random ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from study.probes.settings import Settings, Told
from study.probes.weights.intruders import count_intruders
from study.probes.weights.masks import low_mask, overlap, principal_mask, top_mask
from study.probes.weights.null import NULLS, random_updates
from study.probes.weights.rotation import principal_angles
from study.probes.weights.sparsity import Unchanged, count_unchanged, visible_changes
from study.probes.weights.spectrum import spectral_shift, update_spectrum

Statistics = dict[str, float | None]
"""Numbers by name, as :mod:`study.probes.result` explains them; None where one has no meaning."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One tensor before training, and what training added to it.

    The update is kept apart since the difference of two rounded matrices has full numerical rank.
    """

    name: str
    before: Tensor
    """fp64, any shape; [out, in] for a linear layer."""
    update: Tensor
    """fp64, of the same shape."""
    fp32_masters: bool
    """Whether what was trained was fp32."""

    @property
    def after(self) -> Tensor:
        """The tensor after training, fp64."""
        return self.before + self.update


@dataclass(frozen=True, kw_only=True)
class MatrixResult:
    """The measurements of one matrix."""

    name: str
    shape: tuple[int, int]
    unchanged: Unchanged
    observed: Statistics
    null: dict[str, list[Statistics]]
    """The same numbers for random updates, by kind, in the order of the draws."""


def measure_matrix(pair: Pair, settings: Settings, told: Told) -> MatrixResult:
    """Measure one matrix.

    Args:
        pair: A matrix [m, n] before and after training.
        settings: Shares, draws and seed.
        told: Told of every draw: those of one large matrix take long.
    """
    base = _Base(pair, settings)
    null: dict[str, list[Statistics]] = {}
    for kind in NULLS:
        draws = random_updates(kind, pair.update, settings.draws, settings.seed, pair.name)
        null[kind] = []
        for draw in draws:
            # Turned updates have the update's singular values, so its ranks.
            ranks = base.rank(draw) if kind != "turned" else {}
            null[kind].append(base.change(draw) | ranks)
            told(pair.name, False)
    rows, columns = pair.before.shape
    return MatrixResult(
        name=pair.name,
        shape=(rows, columns),
        unchanged=unchanged(pair),
        observed={**base.size(pair.update), **base.rank(pair.update), **base.change(pair.update)},
        null=null,
    )


def unchanged(pair: Pair) -> Unchanged:
    """The four counts of a tensor of any shape."""
    return count_unchanged(pair.before, pair.after, fp32_masters=pair.fp32_masters)


class _Base:
    """A matrix before training, decomposed once for all updates that it is measured with."""

    def __init__(self, pair: Pair, settings: Settings) -> None:
        self.before, self.fp32_masters = pair.before, pair.fp32_masters
        self.settings = settings
        self.left, self.values, self.right = torch.linalg.svd(self.before, full_matrices=False)
        self.k = k = max(1, round(settings.subspace_share * len(self.values)))
        share = settings.mask_share
        self.regions = {
            "principal": principal_mask(self.left[:, :k], self.values[:k], self.right[:k], share),
            "low": low_mask(self.before, share),
        }

    def size(self, update: Tensor) -> Statistics:
        norm = float(torch.linalg.matrix_norm(self.before))
        return {"relative_norm": float(torch.linalg.matrix_norm(update)) / norm if norm else None}

    def rank(self, update: Tensor) -> Statistics:
        found = update_spectrum(update, self.settings.energy_tops)
        effective = found.effective_rank
        return {
            "numerical_rank": found.numerical_rank,
            "numerical_rank_share": found.numerical_rank / len(self.values),
            "stable_rank": found.stable_rank,
            "effective_rank": effective,
            "effective_rank_share": None if effective is None else effective / len(self.values),
            **{f"energy_top_{k}": share for k, share in found.energy.items()},
        }

    def change(self, update: Tensor) -> Statistics:
        after = self.before + update
        left, values, right = torch.linalg.svd(after, full_matrices=False)
        k = self.k
        return {
            **count_unchanged(self.before, after, fp32_masters=self.fp32_masters).shares(),
            **_angles("left", principal_angles(self.left[:, :k], left[:, :k])),
            **_angles("right", principal_angles(self.right[:k].T, right[:k].T)),
            "spectral_shift": spectral_shift(self.values, values),
            **self.overlaps(update, after),
            "intruders": count_intruders(self.left, left),
        }

    def overlaps(self, update: Tensor, after: Tensor) -> Statistics:
        masks = {"visible": visible_changes(self.before, after)}
        if bool(update.any()):
            masks["largest"] = top_mask(update.abs(), self.settings.mask_share)
        return {
            f"{which}_on_{region}": (
                overlap(masks[which], self.regions[region]).ratio if which in masks else None
            )
            for which in ("visible", "largest")
            for region in self.regions
        }


def _angles(side: str, degrees: Tensor) -> Statistics:
    mean, largest = float(degrees.mean()), float(degrees.max())
    return {f"angle_{side}_mean_deg": mean, f"angle_{side}_max_deg": largest}
