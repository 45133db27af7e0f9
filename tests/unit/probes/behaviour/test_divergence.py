"""Two tokens, in closed form."""

import math

import pytest
import torch

from study.probes.behaviour.divergence import forward_kl, token_entropy


def logits(p):
    return torch.tensor([[math.log(p), math.log(1 - p)]])


def test_kl_of_two_tokens_is_from_base_to_tuned():
    p, q = 0.2, 0.7
    there = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    back = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    assert forward_kl(logits(p), logits(q), 1.0).item() == pytest.approx(there, abs=1e-6)
    assert forward_kl(logits(q), logits(p), 1.0).item() == pytest.approx(back, abs=1e-6)
    assert abs(there - back) > 0.01


def test_temperature_is_that_of_sampling():
    warm = math.sqrt(0.8) / (math.sqrt(0.8) + math.sqrt(0.2))
    entropy = -warm * math.log(warm) - (1 - warm) * math.log(1 - warm)
    assert token_entropy(logits(0.8), 2.0).item() == pytest.approx(entropy, abs=1e-6)
    kl = -math.log(2) - 0.5 * math.log(warm * (1 - warm))  # from a fair coin
    assert forward_kl(logits(0.5), logits(0.8), 2.0).item() == pytest.approx(kl, abs=1e-6)


def test_shape_is_that_of_the_tokens():
    x = torch.randn(2, 3, 5)
    assert forward_kl(x, x, 1.0).shape == token_entropy(x, 1.0).shape == (2, 3)
    assert forward_kl(x, x + 1, 1.0).abs().max() < 1e-6
