"""What counts of sampled answers tell; no torch here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Unbiased chance that at least one of k samples is right.

    1 - C(n - c, k) / C(n, k), as the product of 1 - k / i over i = n - c + 1 ... n, which no
    binomial overflows (Chen et al. 2021, Evaluating Large Language Models Trained on Code,
    equation 1). 1 - (1 - c / n)^k would be biased downwards.

    Args:
        samples: n, drawn for one prompt.
        correct: c of them that are right.
        k: Tries.

    Raises:
        ValueError: If 0 <= correct <= samples or 1 <= k <= samples does not hold.
    """
    if not 0 <= correct <= samples:
        raise ValueError(f"0 <= correct <= samples must hold, got {correct=}, {samples=}")
    if not 1 <= k <= samples:
        raise ValueError(f"1 <= k <= samples must hold for pass@k, got {k=}, {samples=}")
    if samples - correct < k:
        return 1.0
    return 1.0 - math.prod(1 - k / i for i in range(samples - correct + 1, samples + 1))


def mean_pass_at_k(samples: int, correct: Sequence[int], k: int) -> float:
    """:func:`pass_at_k`, mean over prompts.

    Raises:
        ValueError: As there, and if there is no prompt.
    """
    if not correct:
        raise ValueError("pass@k needs at least one prompt, got none")
    return sum(pass_at_k(samples, count, k) for count in correct) / len(correct)


def doublings(samples: int) -> list[int]:
    """1, 2, 4, ... up to ``samples``, which is the last whether or not it is a power of two."""
    return [*(2**i for i in range(samples.bit_length()) if 2**i < samples), samples]


def crossover(base: Mapping[int, float], tuned: Mapping[int, float]) -> int | None:
    """The smallest k from which on the base stays above the tuned model; None if it never does.

    Both must be measured at the same k. A base that is above from the first k on was never
    overtaken: that is no crossover.

    Args:
        base: pass@k of the base by k.
        tuned: The same of the tuned model.

    Raises:
        ValueError: If they are not of the same k.
    """
    if base.keys() != tuned.keys():
        raise ValueError(f"both need the same k, got {sorted(base)} and {sorted(tuned)}")
    last = None
    for k in sorted(base, reverse=True):
        if base[k] <= tuned[k]:
            return last
        last = k
    return None


def entropy(counts: Sequence[int]) -> float:
    """Entropy of answers in nats, Miller and Madow: -sum p ln p + (m - 1) / (2 n).

    The plug-in sum alone is too small on average (Miller 1955; Paninski 2003, Neural Computation
    15, equation 4). Not above ln n: n samples cannot tell more.

    Args:
        counts: Samples of each of m distinct answers, all above 0; n is their sum.

    Raises:
        ValueError: If there is no answer or a count is below 1.
    """
    if not counts or min(counts) < 1:
        raise ValueError(f"an entropy needs counts of at least 1, got {list(counts)}")
    n = sum(counts)
    plugged_in = sum(c / n * math.log(n / c) for c in counts)
    return min(math.log(n), plugged_in + (len(counts) - 1) / (2 * n))
