"""Draws are those of ``torch.multinomial``."""

from __future__ import annotations

import torch

from study.train.packed.race import Race


def test_winners_are_the_tokens_of_multinomial() -> None:
    ours, library = (torch.Generator().manual_seed(7) for _ in range(2))
    race = Race(40, 99, torch.device("cpu"))
    for _ in range(50):
        probabilities = torch.softmax(3 * torch.randn(40, 99), -1)
        race.draw(0, 40, ours)
        expected = torch.multinomial(probabilities, 1, generator=library).squeeze(1)
        assert torch.equal(race.winners(probabilities, torch.arange(40)), expected)
    assert torch.equal(ours.get_state(), library.get_state())


def test_rows_that_are_not_looked_at_change_nothing() -> None:
    ours, library = (torch.Generator().manual_seed(8) for _ in range(2))
    race = Race(30, 11, torch.device("cpu"))
    race.draw(10, 20, ours)  # of a lane whose rows are ten to nineteen
    probabilities = torch.softmax(torch.randn(10, 11), -1)
    expected = torch.multinomial(probabilities, 1, generator=library).squeeze(1)
    going_on = torch.tensor([3, 7])
    assert torch.equal(race.winners(probabilities[going_on], 10 + going_on), expected[going_on])


def test_draws_are_the_library_s_exponentials() -> None:
    ours, library = (torch.Generator().manual_seed(9) for _ in range(2))
    race = Race(1000, 64, torch.device("cpu"))
    race.draw(0, 1000, ours)
    draws = torch.empty(1000, 64).exponential_(1, generator=library)
    # The largest quotient of equal chances is that of the smallest draw.
    winners = race.winners(torch.ones(1000, 64), torch.arange(1000))
    assert torch.equal(winners, draws.argmin(-1))
