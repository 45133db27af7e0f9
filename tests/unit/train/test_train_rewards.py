"""The guarded scorer and the reward function built on it."""

import pytest

from study.plan.flops import Sequences
from study.tasks.base import Problem, Score
from study.train.rewards import Scorer, TaskReward, completion_text

PROBLEMS = [Problem(prompt_id=str(i), prompt=f"{i}=", answer=str(i), solution="") for i in range(3)]


class Echo:
    """Correct if the completion is the answer; `raise` raises, `nan` gives a reward of NaN."""

    name = "echo"
    scorer_errors = 0

    def score(self, problem: Problem, completion: str) -> Score:
        if completion == "raise":
            raise ZeroDivisionError
        if completion == "counted":
            self.scorer_errors += 1
        if completion == "nan":
            return Score(float("nan"), True)
        return Score(float(completion == problem.answer), completion == problem.answer)


def reward_of(completions, problem, lengths=(2, 3, 4)):
    reward = TaskReward(Scorer(Echo()), PROBLEMS, prompt_lengths=lengths, num_generations=2)
    ids = [[7] * (len(str(text)) + 1) for text in completions]
    values = reward(
        prompts=[""] * len(completions),
        completions=completions,
        completion_ids=ids,
        problem=problem,
        trainer_state=None,
    )
    return reward, values


def test_texts_and_message_lists_are_read_alike():
    message = [{"role": "assistant", "content": "1"}]
    assert completion_text("1") == completion_text(message) == "1"
    _, values = reward_of(["1", message], [1, 1])
    assert values == [1.0, 1.0]


def test_batch_is_tallied():
    reward, values = reward_of(["1", "x", "2", "2"], [1, 1, 2, 2])
    assert values == [1.0, 0.0, 1.0, 1.0]
    batch = reward.batch
    assert (batch.completions, batch.prompts, batch.correct) == (4, 2, 3)
    assert batch.unequal_groups == 1
    assert batch.rewards == {0.0, 1.0}
    # One group of one and one: 1 bit, at the cap; one of equal rewards. 2 x 1 + 2 x 0.
    assert batch.bits == 2.0
    assert reward.generated_tokens == 8
    # Two of 3 + 2 tokens and two of 4 + 2.
    assert batch.trained == Sequences(tokens=22, pairs=2 * 25 + 2 * 36, logits=8)
    # 3 x 3 and the fourth token's 4 pairs; 4 x 4 and the fifth's 5.
    assert batch.sampled == Sequences(tokens=18, pairs=2 * 13 + 2 * 21, logits=8)


def test_raising_and_non_finite_scores_cost_the_reward_and_are_counted():
    scorer = Scorer(Echo())
    texts = ["0", "raise", "nan", "counted", "0", "0"]
    scores = scorer([PROBLEMS[0]] * 6, texts)
    assert [score.reward for score in scores] == [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert not scores[2].correct
    assert scorer.errors == 3


def test_more_than_half_failing_is_an_error():
    scorer = Scorer(Echo())
    scorer([PROBLEMS[0]] * 2, ["raise", "0"])  # half is allowed
    with pytest.raises(RuntimeError, match="task echo failed on 2 of 3 completions"):
        scorer([PROBLEMS[0]] * 3, ["raise", "nan", "0"])


def test_one_score_for_each_completion():
    with pytest.raises(ValueError, match="zip"):
        Scorer(Echo())(PROBLEMS[:2], ["0"])
