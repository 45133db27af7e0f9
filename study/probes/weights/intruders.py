"""Leading singular vectors that the matrix did not have before training."""

from __future__ import annotations

from torch import Tensor

TOP = 10
"""Leading vectors that are looked at (2410.21228; PEFT's ``reduce_intruder_dimension``)."""
COSINE = 0.5
"""Below this similarity to every old vector, a vector is new."""


def count_intruders(before: Tensor, after: Tensor, top: int = TOP, cosine: float = COSINE) -> int:
    """Count intruder dimensions (Shuttleworth et al., 2410.21228, definition 1).

    An intruder is one of the ``top`` left singular vectors after training whose absolute cosine
    with every left singular vector before training is below ``cosine``. In a space of few
    dimensions no vector is far from all old ones, hence the random updates beside the count.

    Args:
        before: Left singular vectors before training, as columns [m, p].
        after: The same after training, by falling singular value [m, p].
        top: Vectors that are looked at; fewer if the matrix has fewer.
        cosine: Threshold.
    """
    similarity = (after[:, :top].T @ before).abs().amax(dim=1)
    return int((similarity < cosine).sum())
