"""From `--jobs` and `--cluster` to workers, or to one message that says why not."""

import sys

import pytest

from kvsim.errors import InputError
from kvsim.study.executors import opened, outcomes
from kvsim.study.executors.processes import LostWorkerError
from kvsim.study.executors.serial import SerialExecutor
from tests.study.executors.test_processes import die, out_of_reach, refuse, square


def test_one_job_is_this_process_itself():
    with opened(jobs=1) as workers:
        assert isinstance(workers.executor, SerialExecutor)
        assert list(workers.executor.map(square, [1, 2])) == [1, 4]
        with pytest.raises(Exception, match="it cannot be done"):
            workers.executor.submit(refuse).result()


def test_every_item_comes_back_once_with_its_outcome():
    with opened(jobs=1) as workers:
        pieces = list(outcomes(workers, square, range(1000), lost=_lost))
    assert sorted(item for piece in pieces for item in piece) == [(number, number * number) for number in range(1000)]
    assert len(pieces) < 200


def _lost(item, error):
    return f"{item}: {error}"


def die_at_three(number):
    return die() if number == 3 else number


def test_an_item_that_kills_its_workers_has_an_outcome_too_and_takes_none_with_it():
    with opened(jobs=2) as workers:
        found = dict(pair for piece in outcomes(workers, die_at_three, range(40), lost=_lost) for pair in piece)
    assert found.pop(3) == "3: 3 worker processes died in it; were they out of memory?"
    assert found == {number: number for number in range(40) if number != 3}


def test_a_lost_piece_is_known_by_the_executor_that_lost_it():
    with opened(jobs=2) as workers, pytest.raises(workers.lost):
        workers.executor.submit(die).result()
    assert workers.lost == (LostWorkerError,)


def test_no_jobs_are_refused():
    with pytest.raises(InputError, match="jobs: 0 is too few"), opened(jobs=0):
        pass


def test_a_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError) as error, opened(cluster="local"):
        pass
    assert "pip install 'kvsim[cluster]'" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("tcp://127.0.0.1:9", "no scheduler answers there"),
        ("pigeon://127.0.0.1:9", "no scheduler answers there"),
        ("127.0.0.1", "is no address; write tcp://HOST:PORT, or local"),
    ],
)
def test_a_scheduler_that_cannot_be_reached_is_told_in_one_line(address, said, monkeypatch):
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    monkeypatch.setattr("kvsim.study.executors.cluster.CONNECT_S", 1)
    with pytest.raises(InputError) as error, opened(cluster=address):
        pass
    assert str(error.value).startswith(f"--cluster {address}: {said}")
    assert "\n" not in str(error.value)


def test_an_interrupt_never_reaches_the_workers_of_a_local_cluster():
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    with opened(cluster="local", jobs=1) as workers:
        assert workers.executor.submit(out_of_reach).result()
