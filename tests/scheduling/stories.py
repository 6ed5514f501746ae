"""Small stories of scheduling: single steps, and whole runs that are told twice, leaping and stepwise.

Blocks are of one slot and every step takes 1,000 ps unless told otherwise, so that slots and tokens are the same
numbers.
"""

from kvsim.engine.run import simulate
from kvsim.memory.paged import PagedAllocator
from kvsim.metrics.memory import SERIES
from kvsim.request import Sequence
from kvsim.scheduling.continuous import ContinuousScheduler
from kvsim.step import CLASSES
from kvsim.timing.interface import LinearTiming
from tests.laws.cases import everything

STEP = LinearTiming(step_ps=1000)


def scheduler(kind=ContinuousScheduler, pool=1000, *, block_size=1, allocator=None, seqs=8, budget=64, **rules):
    allocator = allocator or PagedAllocator(pool, block_size=block_size)
    return kind(allocator, max_num_seqs=seqs, max_num_batched_tokens=budget, **rules)


def submit(scheduler, *prompts, max_tokens=None):
    """Sequences numbered on from those that are there, one for each prompt length."""
    first = max(ids(scheduler.live()), default=-1) + 1
    sequences = [Sequence(first + number, prompt, max_tokens) for number, prompt in enumerate(prompts)]
    for sequence in sequences:
        sequence.declared = scheduler.declare(sequence)
        scheduler.submit(sequence)
    return sequences


def step(scheduler):
    """Plan a step and let it be over."""
    plan = scheduler.plan()
    scheduler.complete(plan)
    scheduler.allocator.audit(scheduler.live())
    return plan


def ids(sequences):
    return [sequence.id for sequence in sequences]


def chunks(plan):
    return [(chunk.sequence.id, chunk.tokens) for chunk in plan.chunks]


def waiting(scheduler):
    return [s.id for s in scheduler.live() if s.id not in scheduler.running]


def serve(requests, make, *, timing=STEP, limit=512, **options):
    """The log of a stepwise run by a scheduler that `make` makes, audited; leaping it must be the same."""
    logs = [
        simulate(iter(requests), make(), timing, max_model_len=limit, check=True, stepwise=stepwise, **options)
        for stepwise in (True, False)
    ]
    assert everything(logs[0]) == everything(logs[1])
    return logs[0]


def records(log):
    return {record.id: record for record in log.recording.requests.ended}


def ends(log):
    """(end, time, tokens) of each request."""
    return {number: (r.end, r.end_ps, r.generated_tokens) for number, r in sorted(records(log).items())}


def events(log):
    """(time, request, cause, outcome) of each blocked allocation."""
    return [(event.time_ps, event.request, event.cause, event.outcome) for event in log.recording.requests.events]


def gaps(log):
    """(number, sum, longest) of the gaps between tokens."""
    histogram = log.recording.gaps.histogram
    return histogram.count, histogram.sum_ps, histogram.max_ps


def slots_ps(log):
    """The integrals of the classes that are not 0."""
    integrals = zip(CLASSES, log.recording.memory.totals.slots_ps, strict=True)
    return {name: value for name, value in integrals if value}


def series(log, *names):
    """Those columns of the record of steps, row by row."""
    values, width = log.recording.memory.series, len(SERIES)
    rows = [dict(zip(SERIES, values[at : at + width], strict=True)) for at in range(0, len(values), width)]
    return [tuple(row[name] for name in names) for row in rows]
