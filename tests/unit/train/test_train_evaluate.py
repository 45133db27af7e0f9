"""The parts of evaluation that need no model."""

import pytest
import torch

from study.train.evaluate import evaluation_mode, evaluation_seed, own_draws, until_end


def test_seed_depends_on_run_and_evaluation():
    seeds = {evaluation_seed(seed, index) for seed in range(20) for index in range(20)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert evaluation_seed(3, 1) == evaluation_seed(3, 1)


def test_draws_inside_leave_those_outside_alone():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with own_draws(7):
        inside = torch.rand(3)
    assert torch.equal(torch.rand(3), expected)
    with own_draws(7):
        assert torch.equal(torch.rand(3), inside)


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_restored_even_after_an_error(training):
    model = torch.nn.Linear(1, 1).train(training)
    with pytest.raises(KeyError), evaluation_mode(model):
        assert not model.training
        assert not torch.is_grad_enabled()
        raise KeyError
    assert model.training == training
    assert torch.is_grad_enabled()


def test_completion_ends_with_its_first_end_token():
    assert until_end([5, 1, 6, 1], [1, 2]) == [5, 1]
    assert until_end([2, 2], [1, 2]) == [2]
    assert until_end([5, 6], [1, 2]) == [5, 6]
