"""Advantages shaped by the entropy of each token: one formula for both engines."""

from torch import Tensor


def shaped_advantages(
    advantages: Tensor, entropies: Tensor, alpha: Tensor | float, kappa: Tensor | float
) -> Tensor:
    """Returns A + min(alpha H, |A| / kappa), token by token; no gradient flows through H.

    The sign of A stays, zero stays zero, and |A'| lies in [1 - 1 / kappa, 1 + 1 / kappa] |A|:
    positive advantages grow, negative ones shrink. H is the entropy under the policy that is being
    trained, at its sampling temperature (Cheng et al. 2025, arXiv:2506.14758).

    Args:
        advantages: A, of any shape that broadcasts against that of the entropies.
        entropies: H in nats, one for each token.
        alpha: Weight of the entropy; zero leaves A as it is.
        kappa: Bound of the term, above 1.
    """
    # An entropy near zero may be rounded to below it, and would push A to and over zero.
    bonus = alpha * entropies.detach().clamp(min=0)
    return advantages + bonus.minimum(advantages.abs() / kappa)
