"""One training pass: forward and backward over the micro-batches of several lanes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from study.train.packed.batch import Micro
from study.train.packed.lane import Lane
from study.train.packed.layers import TrainedLayers, apply
from study.train.packed.layout import Layout, lay_out
from study.train.packed.loss import TargetLogProbs, high_entropy, token_entropies, token_losses
from study.train.packed.model import PackedModel
from study.train.packed.segments import Segments
from study.train.packed.weights import LaneWeights
from study.train.shaping import shaped_advantages

Work = tuple[Lane, Micro]


def training_pass(model: PackedModel, work: Sequence[Work]) -> None:
    """Adds each lane's gradient of its micro-batch, and notes its loss.

    Args:
        model: The model.
        work: Lanes with the micro-batch of each; micro-batches without rows are left out.
    """
    # Lanes that share the base side by side: their tokens are multiplied together.
    work = sorted(
        (item for item in work if item[1].rows), key=lambda item: item[0].weights.shares_base
    )
    if not work:
        return
    layout = lay_out([lane.batch.lane_rows(micro) for lane, micro in work], model.device)
    weights = [lane.weights for lane, _ in work]
    hidden = model.hidden(
        layout.ids,
        layout.positions,
        _layers(model, weights, layout.sizes),
        layout.attention,
    )
    predicting = _layers(model, weights, layout.prediction_sizes)
    logits = model.logits(hidden.index_select(0, layout.sources), predicting)
    temperatures = [lane.feed.terms.temperature for lane, _ in work]
    if any(temperature != 1.0 for temperature in temperatures):
        inverse = [1 / temperature for temperature in temperatures]
        logits = logits * _per_token(inverse, layout).unsqueeze(1)
    log_probs = apply(TargetLogProbs, logits, layout.targets)
    entropies = _entropies(work, logits.detach())
    losses, clipped = _losses(work, layout, log_probs, _advantages(work, layout, entropies))
    losses = _of_high_entropy(work, layout, losses, entropies)
    losses.sum().backward()  # type: ignore[no-untyped-call]
    _note(work, layout, losses.detach(), clipped, log_probs.detach(), entropies)
    _note_likelihood(work, layout, log_probs.detach(), logits.detach(), entropies)


def _layers(
    model: PackedModel, weights: Sequence[LaneWeights], sizes: Sequence[int]
) -> TrainedLayers:
    return TrainedLayers(model.architecture, Segments.of(weights, sizes), model.device)


def _per_token(values: Sequence[float], layout: Layout) -> Tensor:
    """A value for each prediction, given one for each lane."""
    sizes = torch.tensor(layout.prediction_sizes, device=layout.ids.device)
    return torch.tensor(values, device=layout.ids.device).repeat_interleave(sizes)


def _entropies(work: Sequence[Work], logits: Tensor) -> Tensor:
    """Entropy of each prediction; zeros, which nobody reads, where no lane has a use for it."""
    if any(lane.feed.terms.reads_entropy for lane, _ in work):
        return token_entropies(logits)
    return logits.new_zeros(logits.size(0))


def _advantages(work: Sequence[Work], layout: Layout, entropies: Tensor) -> Tensor:
    """Advantage of each prediction: that of its row, shaped in lanes that ask for it."""
    own = [lane.batch.advantages[row] for lane, micro in work for row in micro.rows]
    advantages = torch.tensor(own, device=entropies.device)[layout.row_of]
    terms = [lane.feed.terms for lane, _ in work]
    if not any(t.alpha > 0 for t in terms):
        return advantages
    alpha = _per_token([t.alpha for t in terms], layout)
    kappa = _per_token([t.kappa for t in terms], layout)
    return shaped_advantages(advantages, entropies, alpha, kappa)


def _losses(
    work: Sequence[Work], layout: Layout, log_probs: Tensor, advantages: Tensor
) -> tuple[Tensor, Tensor]:
    weight = [weight for _, micro in work for weight in micro.weights]
    old = log_probs.detach()
    if any(micro.old is not None for _, micro in work):
        own = torch.split(old, layout.prediction_sizes)
        known = [now if m.old is None else m.old for now, (_, m) in zip(own, work, strict=True)]
        old = torch.cat(known)
    low = _per_token([lane.feed.terms.low for lane, _ in work], layout)
    high = _per_token([lane.feed.terms.high for lane, _ in work], layout)
    return token_losses(
        log_probs,
        old,
        advantages,
        torch.tensor(weight, device=log_probs.device)[layout.row_of],
        (low, high),
        _sequences(work, layout),
    )


def _of_high_entropy(
    work: Sequence[Work], layout: Layout, losses: Tensor, entropies: Tensor
) -> Tensor:
    """The losses, zero where a lane leaves tokens of low entropy out of its micro-batch's."""
    shares = [lane.feed.terms.entropy_share for lane, _ in work]
    if all(share == 1 for share in shares):
        return losses
    own = torch.split(entropies, layout.prediction_sizes)
    kept = [high_entropy(entropy, share) for entropy, share in zip(own, shares, strict=True)]
    return losses * torch.cat(kept)


def _sequences(work: Sequence[Work], layout: Layout) -> tuple[Tensor, Tensor] | None:
    """Where the ratio is that of a whole row: the units that share one, and their tokens."""
    levels = [lane.feed.terms.by_row for lane, _ in work]
    if not any(levels):
        return None
    device = layout.ids.device
    whole = torch.tensor(levels, device=device).repeat_interleave(
        torch.tensor(layout.prediction_sizes, device=device)
    )
    alone = torch.arange(whole.numel(), device=device) + layout.row_of.max() + 1
    _, unit, tokens = torch.unique(
        torch.where(whole, layout.row_of, alone), return_inverse=True, return_counts=True
    )
    return unit, tokens


def _note(
    work: Sequence[Work],
    layout: Layout,
    losses: Tensor,
    clipped: Tensor,
    log_probs: Tensor,
    entropies: Tensor,
) -> None:
    """Keeps what the step's metrics and later passes over the same completions need."""
    sizes = layout.prediction_sizes
    measured = (losses, clipped, log_probs, entropies, layout.row_of)
    pieces = zip(*(torch.split_with_sizes(x, sizes) for x in measured), strict=True)
    for (lane, micro), (loss, clip, log_prob, entr, rows) in zip(work, pieces, strict=True):
        micro.loss = float(loss.sum())
        if lane.feed.terms.reuses:
            micro.old = log_prob if micro.old is None else micro.old
            micro.entropy = float(entr.mean())
            # A row of one ratio and one advantage counts once; else every token counts.
            if lane.feed.terms.by_row and lane.feed.terms.alpha == 0:
                micro.clipped = rows[clip].unique().numel() / micro.size
            else:
                micro.clipped = float(clip.float().mean())


def _note_likelihood(
    work: Sequence[Work], layout: Layout, log_probs: Tensor, logits: Tensor, entropies: Tensor
) -> None:
    """Keeps the metrics of lanes that are supervised."""
    if not any(lane.feed.terms.is_likelihood for lane, _ in work):
        return
    sizes = layout.prediction_sizes
    measured = (log_probs, logits.argmax(-1) == layout.targets, entropies)
    pieces = zip(*(torch.split_with_sizes(x, sizes) for x in measured), strict=True)
    for (lane, micro), (log_prob, likeliest, entropy) in zip(work, pieces, strict=True):
        if lane.feed.terms.is_likelihood:
            micro.loss = -float(log_prob.sum()) * micro.weights[0]  # all tokens weigh the same
            micro.accuracy = float(likeliest.float().mean())
            micro.entropy = float(entropy.mean())
