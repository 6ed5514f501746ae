"""Where each replica of a fleet is a queue of the textbooks, the fleet is theirs too; see `test_queueing`."""

from kvsim.engine.fleet import ROUTERS, Routing, simulate_fleet
from kvsim.engine.run import Conditions
from kvsim.memory.paged import PagedAllocator
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.timing.interface import LinearTiming
from kvsim.workload.arrivals import Poisson
from kvsim.workload.lengths import Constant, Exponential
from kvsim.workload.stream import GeneratedTraffic, Workload
from tests.laws.test_queueing import D_PS, D_S, lindley_ps, waits_ps

REPLICAS = 4


def serve(router, rate, outputs, seed, *, requests):
    traffic = GeneratedTraffic(
        arrivals=Poisson(rate=rate), prompt_tokens=Constant(value=1), output_tokens=outputs, requests=requests
    )
    fleet = simulate_fleet(
        Workload(traffic, seed=seed),
        REPLICAS,
        lambda: ContinuousScheduler(PagedAllocator(1 << 20, block_size=16), max_num_seqs=1, max_num_batched_tokens=1),
        LinearTiming(step_ps=D_PS),
        Routing(lambda _: router),
        Conditions(max_model_len=1 << 16),
    )
    records = [log.recording.requests.ended for log in fleet.replicas]
    assert sum(map(len, records)) == requests
    where = {record.id: number for number, ended in enumerate(records) for record in ended}
    return sorted((record for ended in records for record in ended), key=lambda record: record.id), where


def shortest_queue(requests):
    """Join the shortest queue, ties to the next in turn: (waits, where), from arrivals and lengths alone."""
    ends, waits, where, last = [[] for _ in range(REPLICAS)], [], [], -1
    for request in requests:
        # Who ends at this very moment is still there.
        inside = [sum(end >= request.arrival_ps for end in queue) for queue in ends]
        shortest = [number for number in range(REPLICAS) if inside[number] == min(inside)]
        last = next((number for number in shortest if number > last), shortest[0])
        start = max([request.arrival_ps, *ends[last][-1:]])
        waits.append(start - request.arrival_ps)
        where.append(last)
        ends[last].append(start + request.output_tokens * D_PS)
    return waits, where


def test_least_requests_joins_the_shortest_queue_to_the_picosecond():
    for seed in range(3):
        served, where = serve(
            ROUTERS["least-requests"](), 0.9 * REPLICAS / (8 * D_S), Exponential(mean=8, max=60), seed, requests=600
        )
        waits, expected = shortest_queue(served)
        assert [where[request.id] for request in served] == expected
        assert waits_ps(served) == waits
        assert sum(map(bool, waits)) > 100


def test_each_replica_of_a_random_split_is_a_queue_of_its_own_and_follows_lindleys_recursion():
    served, where = serve(
        ROUTERS["random"](seed=1), 0.8 * REPLICAS / (12 * D_S), Exponential(mean=12), 1, requests=2000
    )
    for replica in range(REPLICAS):
        own = [request for request in served if where[request.id] == replica]
        # 5 sigma of a binomial count with p = 1 / REPLICAS.
        assert abs(len(own) - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5
        assert waits_ps(own) == lindley_ps(own)
