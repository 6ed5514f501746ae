"""Random streams: keyed by purpose, member and turn, all from one seed."""

import subprocess
import sys

import pytest

from kvsim.workload.streams import Streams


def draws(streams: Streams, *key: object) -> list[float]:
    return streams.generator(*key).random(4).tolist()  # type: ignore[arg-type]


def test_the_same_seed_and_key_give_the_same_draws():
    assert draws(Streams(7), "arrivals", 3, 1) == draws(Streams(7), "arrivals", 3, 1)


def test_asking_for_other_streams_in_between_changes_nothing():
    streams = Streams(7)
    draws(streams, "prompt_tokens")
    draws(streams, "arrivals", 1)
    assert draws(streams, "arrivals") == draws(Streams(7), "arrivals")


def test_every_part_of_the_key_and_the_seed_matter():
    keys = [
        (0, "arrivals", 0, 0),
        (1, "arrivals", 0, 0),
        (1 << 32, "arrivals", 0, 0),
        (0, "output_tokens", 0, 0),
        (0, "arrivals", 1, 0),
        (0, "arrivals", 0, 1),
        (0, "arrivals", 1 << 32, 0),
        (0, "arrivals", (1 << 32) + 1, 0),
        (0, "arrivals", "alice", 0),
        (0, "arrivals", "bob", 0),
        (0, "arrivals", "alice", 1),
    ]
    seen = {tuple(draws(Streams(seed), *key)) for seed, *key in keys}
    assert len(seen) == len(keys)


def test_another_process_with_another_hash_seed_draws_the_same():
    code = (
        "from kvsim.workload.streams import Streams;"
        "print(Streams(7).generator('arrivals', 'alice', 2).random(4).tolist())"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for salt in ("1", "2")
    ]
    assert printed == [str(draws(Streams(7), "arrivals", "alice", 2))] * 2


@pytest.mark.parametrize("seed", [-1, 1.0, True, 1 << 128, "1"])
def test_a_seed_that_is_no_whole_number_in_range_is_refused(seed):
    with pytest.raises(ValueError, match=r"^seed: "):
        Streams(seed)


@pytest.mark.parametrize(("key", "argument"), [((-1, 0), "member"), ((0, -1), "turn"), ((1 << 64, 0), "member")])
def test_a_key_out_of_range_is_refused_by_name(key, argument):
    with pytest.raises(ValueError, match=f"^{argument}: "):
        Streams(0).generator("arrivals", *key)
