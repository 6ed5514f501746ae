"""The options of `contiguous` and `reserve` arrive at their allocators, and what cannot go together is refused."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.errors import InputError
from kvsim.memory.interface import Allocator
from kvsim.request import Sequence
from kvsim.scenario.build import build
from kvsim.step import Ask

SCENARIO = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 10000},
    "engine": {"max_model_len": 4096},
    "workload": {"rate": "4/s", "requests": 10, "prompt_tokens": 500, "output_tokens": 100},
}


def allocator(**options: Any) -> Allocator:
    return build(Scenario.from_dict(SCENARIO | {"allocator": options}, name="here"), 0).scheduler.allocator


@pytest.mark.parametrize(
    ("growth", "slots"), [("chunk", 768), ("double", 1024), ("exact", 600), ("cat", 600)]
)  # fmt: skip
def test_a_growth_becomes_the_capacity_of_its_rule(growth, slots):
    assert allocator(name="contiguous", growth=growth).capacity(600) == slots


def test_the_length_of_a_growth_chunk_is_the_scenarios():
    assert allocator(name="contiguous", chunk=100).capacity(101) == 200


@pytest.mark.parametrize(
    ("fit", "largest"),
    # Holes of 1,500 at 0 and 1,000 at 2,000, and 6,500 at the end; one of 900 comes in.
    [
        ("first", [600, 1000, 6500]),
        ("best", [1500, 100, 6500]),
        ("worst", [1500, 1000, 5600]),
        ("next", [1500, 1000, 5600]),
    ],
)
def test_a_fit_finds_its_own_hole(fit, largest):
    made = allocator(name="contiguous", fit=fit, growth="exact")
    batch = [Sequence(number, tokens, None, tokens=tokens) for number, tokens in enumerate((1500, 500, 1000, 500, 900))]
    made.acquire([Ask(one, one.tokens, admit=True) for one in batch[:4]])
    made.release(batch[0])
    made.release(batch[2])
    made.acquire([Ask(batch[4], 900, admit=True)])
    # Slots in holes below a need tell the holes apart.
    sizes = sorted({need - 1 for need in range(2, 7000) if made.external(need) > made.external(need - 1)})
    assert sizes == sorted(largest)


def test_a_buddy_takes_powers_of_two_and_no_more_than_its_largest_block():
    made = allocator(name="contiguous", fit="buddy", growth="exact")
    assert made.most_slots == 8192
    made.acquire([Ask(Sequence(0, 600, None, tokens=600), 600, admit=True)])
    assert made.usage().rounding == 424


def test_concatenation_knows_the_tensors_of_the_model():
    made = allocator(name="contiguous", growth="cat")
    one = Sequence(0, 640, None, tokens=640)
    made.acquire([Ask(one, 640, admit=True)])
    one.written = 640
    # K and V of 32 layers: one of 64 tensors is in two places.
    assert made.acquire([Ask(one, 641)]).copied_slots == 640
    assert made.usage().moving == 10


def test_compaction_is_never_unless_it_is_asked_for():
    granted = {}
    for compaction in ("never", "on-failure"):
        made = allocator(name="contiguous", growth="exact", compaction=compaction)
        batch = [Sequence(number, 2500, None, tokens=2500) for number in range(4)]
        made.acquire([Ask(one, 2500, admit=True) for one in batch])
        made.release(batch[0])
        made.release(batch[2])
        got = made.acquire([Ask(Sequence(9, 5000, None, tokens=5000), 5000, admit=True)])
        granted[compaction] = getattr(got, "cause", "granted")
    assert granted == {"never": "fragmentation", "on-failure": "granted"}


@pytest.mark.parametrize(("size", "declared"), [("max", 0), ("pow2", 628), ("oracle", 599)])
def test_a_size_is_what_a_request_declares(size, declared):
    assert allocator(name="reserve", size=size).declare(500, 100) == declared


def test_reserve_lies_where_its_fit_says():
    made = allocator(name="reserve", size="oracle", fit="buddy")
    made.acquire([Ask(Sequence(0, 500, None, tokens=500, declared=599), 500, admit=True)])
    assert made.usage().rounding == 1024 - 599


def test_compaction_over_a_buddy_is_refused_where_it_was_written():
    with pytest.raises(
        InputError, match=r"allocator\.compaction.*compaction is on-failure, but the blocks of fit buddy"
    ):
        allocator(name="contiguous", fit="buddy", compaction="on-failure")


@pytest.mark.parametrize("growth", ["chunk", "cat"])
def test_what_concatenation_leaves_out_is_said_of_it_alone(growth):
    simulation = build(
        Scenario.from_dict(SCENARIO | {"allocator": {"name": "contiguous", "growth": growth}}, name="here"), 0
    )
    said = any("tensors of one request" in sentence for sentence in simulation.not_modelled)
    assert said == (growth == "cat")
