"""The packed engine against TRL, and against itself."""

import pytest

pytest.register_assert_rewrite("tests.equivalence.agree", "tests.equivalence.draws")
