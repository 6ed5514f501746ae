"""Every allocator agrees with its naive model after every verb of the conformance suite's pseudo-random user."""

import pytest

from kvsim.testing.allocators.walk import Walk
from tests.memory.beside import Beside
from tests.memory.pairs import LONGEST, PAIRS


@pytest.mark.parametrize("pair", PAIRS)
def test_an_allocator_and_its_naive_model_agree_after_every_verb(pair):
    make = PAIRS[pair]
    longest = getattr(make, "longest", LONGEST)
    for seed in range(3 if longest > 1000 else 8):
        walker = Walk(Beside(*make(longest * (1 + seed), longest)), seed, longest)
        for _ in walker.steps(60):
            pass
