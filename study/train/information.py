"""How much the rewards of a batch can tell a policy gradient: the entropy of its groups.

An episode enters the gradient through its advantage alone, and tells at most the entropy of that:
log2 of the number of reward values, however long it is; a group of equal rewards tells nothing
(Schulman et al. 2025, LoRA Without Regret).
"""

import math
from collections import Counter
from collections.abc import Sequence


def reward_bits(groups: Sequence[Sequence[float]]) -> float:
    """Returns the sum over groups of G x H, in bits.

    G is a group's number of episodes and H the entropy of its rewards in bits per episode:
    -sum p log2 p of their shares, which is too small on average, plus Miller and Madow's first
    order correction (m - 1) / (2 G ln 2) for m different rewards (Miller 1955; Paninski 2003,
    Neural Computation 15, equation 4), at most log2 of the number of rewards in the batch.

    Args:
        groups: Rewards of each group, at least one in each.
    """
    cap = math.log2(max(1, len({reward for group in groups for reward in group})))
    return sum(len(group) * min(cap, _entropy(group)) for group in groups)


def _entropy(group: Sequence[float]) -> float:
    size, counts = len(group), Counter(group).values()
    plugged_in = sum(n / size * math.log2(size / n) for n in counts)
    return plugged_in + (len(counts) - 1) / (2 * size * math.log(2))
