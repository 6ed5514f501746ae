"""A comparison with intervals: variants on the same random streams, replicated, cut into batches, or bootstrapped."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kvsim.metrics.result import Result
from kvsim.metrics.tables import Dropped, Pieces
from kvsim.scenario.resolve import Scenario
from kvsim.study.replication.asked import Asked, Method
from kvsim.study.replication.batching import batches_of, correlation
from kvsim.study.replication.catalogue import numbers
from kvsim.study.replication.estimates import Estimate, estimates
from kvsim.study.replication.runs.replicate import (
    Executor,
    First,
    Piece,
    Replicate,
    Serial,
    observed_run,
    simulate,
)
from kvsim.study.replication.sessions import grouping, session_estimates, session_notes, traced
from kvsim.study.replication.trust import batches_differ, judged, notes
from kvsim.study.replication.warmup import WarmUp, found_warmup, of_warmup, with_warmup
from kvsim.study.reporter import Progress
from kvsim.study.seeds import replication_seed
from kvsim.study.side_by_side import part_of
from kvsim.study.statistics.intervals import Interval, mean_interval
from kvsim.study.statistics.saturation import Queue
from kvsim.study.statistics.sequential import BIAS, LEAST, more_replications, widest

PRECISE = ("ttft_s.mean", "tpot_s.mean", "e2e_s.mean")
"""The metrics whose intervals `until_ci` is about."""


@dataclass(frozen=True)
class Variant:
    """One variant in a study: its estimates by metric, and what its queue did (None: not to be judged).

    `runs` are its replications or batches; `correlation` that of neighbouring batches.
    """

    name: str
    estimates: Mapping[str, Estimate]
    queue: Queue | None
    runs: Sequence[Replicate] = field(default=(), repr=False)
    correlation: float | None = None

    @property
    def saturated(self) -> bool:
        """Its queue grows without end, so that no interval means anything."""
        return self.queue is not None and self.queue.saturated

    @property
    def trusted(self) -> bool | None:
        """Its intervals may be trusted; None where its queue is not to be judged."""
        if self.queue is None:
            return None
        return self.queue.forgets and not self.saturated and batches_differ(self.correlation)


@dataclass(frozen=True)
class Study:
    """What the runs say together: every variant against the baseline, and what a reader should know of it.

    `samples` is how many replications, batches or sessions intervals rest on, `seeds` those of the runs in their
    order, `target` the share that `until_ci` asked for, `warmup` what MSER-5 found.
    """

    method: Method
    baseline: str
    level: float
    samples: int
    seeds: Sequence[int]
    variants: Sequence[Variant]
    target: float | None = None
    warmup: WarmUp | None = None
    notes: Sequence[str] = ()

    def variant(self, name: str) -> Variant:
        """The variant of this name."""
        return next(variant for variant in self.variants if variant.name == name)


def compare_with_intervals(
    variants: Sequence[tuple[str, Scenario]],
    asked: Asked,
    *,
    seed: int | None = None,
    stepwise: bool = False,
    check: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    pieces: Sequence[Pieces] | None = None,
) -> tuple[list[Result], Study | None]:
    """Run what is asked: the first run of each variant as a Result, as `compare` gives it, and what all say together.

    The first replication has the scenario's own seed, or `seed`; the others have seeds that follow from it, the same
    for all variants, so that differences are paired. Where no intervals are asked for there is no study, and the
    results are those of one run. `executor` runs the further replications (None: here, one by one); the answer does
    not depend on it. `pieces` are where the records of each first run go (None: nowhere).

    InputError where the variants and what is asked do not go together.
    """
    baseline = asked.check(variants)
    hands = executor or Serial()
    warmup = found_warmup(variants, seed=seed, executor=hands, check=check) if asked.mser else None
    if warmup is not None:
        variants = [(name, with_warmup(scenario, warmup.cut_ps)) for name, scenario in variants]
    method = asked.method(variants)

    def piece(place: int, number: int) -> Piece:
        scenario = variants[place][1]
        first = scenario.seed if seed is None else seed
        return Piece(scenario, replication_seed(first, number), stepwise, check)

    total = len(variants) * (asked.first_replications if method == "replications" else 1)
    firsts: list[First] = []
    into: Sequence[Pieces] = [Dropped() for _ in variants] if pieces is None else pieces
    for place, ((name, _), these) in enumerate(zip(variants, into, strict=True)):
        first = observed_run(piece(place, 0), these, progress and part_of(progress, place, total, name))
        first.result.name = name
        firsts.append(first)
    results = [first.result for first in firsts]
    if not asked.intervals:
        for result in results:
            result.notes = [*result.notes, *of_warmup(warmup)]
        return results, None
    if method == "replications":
        runs = _replications([name for name, _ in variants], firsts, asked, hands, piece, progress)
        base = runs[[name for name, _ in variants].index(baseline)]
        found = [estimates(own, None if own is base else base, asked.level) for own in runs]
        made = _variants(results, found, runs, runs, baseline)
        samples, seeds = len(runs[0]), [run.seed for run in runs[0]]
        said = [] if asked.until_ci is None else _of_stopping(_to_be_precise(runs, asked.level), asked.until_ci)
    else:
        seeds = [results[0].seed]
        if method == "batches":
            made, samples, said = _of_batches(firsts, asked, baseline)
        else:
            made, samples, said = _of_sessions(variants, firsts, asked, baseline)
    return results, Study(
        method=method,
        baseline=baseline,
        level=asked.level,
        samples=samples,
        seeds=seeds,
        variants=made,
        target=asked.until_ci,
        warmup=warmup,
        notes=[*said, *of_warmup(warmup), *notes(made, method)],
    )


def _replications(
    names: Sequence[str],
    firsts: Sequence[First],
    asked: Asked,
    hands: Executor,
    piece: Callable[[int, int], Piece],
    progress: Progress | None,
) -> list[list[Replicate]]:
    """The runs of each variant: as many as asked for, or until their intervals are short enough."""
    runs = [[first.replicate] for first in firsts]
    wanted = asked.first_replications
    while len(runs[0]) < wanted:
        done = len(runs[0])
        places = [(place, number) for number in range(done, wanted) for place in range(len(runs))]
        for count, ((place, _), answer) in enumerate(
            zip(places, hands.map(simulate, [piece(*one) for one in places]), strict=True), start=done * len(runs) + 1
        ):
            runs[place].append(answer)
            if progress is not None:
                progress(count / (wanted * len(runs)), names[place])
        if asked.until_ci is not None:
            wanted += more_replications(wanted, _to_be_precise(runs, asked.level), asked.until_ci, most=asked.most)
    return runs


def _to_be_precise(runs: Sequence[Sequence[Replicate]], level: float) -> list[Interval]:
    """The intervals that `until_ci` is about: of a variant that is saturated none ever counts."""
    made = []
    for own in runs:
        if _saturated(judged(own)):
            continue
        found = [numbers(run.metrics) for run in own]
        each = ([one[key] for one in found if key in one] for key in PRECISE)
        made += [mean_interval(values, level) for values in each if values]
    return made


def _of_stopping(intervals: Sequence[Interval], target: float) -> list[str]:
    """What to say of intervals that decided when to stop."""
    reach = widest(intervals)
    if reach is None:
        return ["No interval could be narrowed down: more replications would not have helped."]
    if reach > target:
        return [f"Intervals still reach {reach:.1%} of their estimates, more than the {target:.1%} asked for."]
    return [BIAS.format(least=LEAST)]


def _variants(
    results: Sequence[Result],
    found: Sequence[Mapping[str, Estimate]],
    runs: Sequence[Sequence[Replicate]],
    told_by: Sequence[Sequence[Replicate]],
    baseline: str,
) -> list[Variant]:
    """The variants with their estimates, without the intervals that saturation takes, which `told_by` tells."""
    queues = {result.name: judged(own) for result, own in zip(results, told_by, strict=True)}
    made = []
    for result, own, these in zip(results, found, runs, strict=True):
        alone = _saturated(queues[result.name])
        either = alone or _saturated(queues[baseline])
        kept = {key: without(one, alone=alone, either=either) for key, one in own.items()}
        made.append(Variant(result.name, kept, queues[result.name], these))
    return made


def without(estimate: Estimate, *, alone: bool, either: bool) -> Estimate:
    """An estimate without what saturation takes: its own interval (`alone`), or that of its difference (`either`)."""
    difference = estimate.difference
    if either and difference is not None:
        difference = replace(difference, interval=difference.interval.without_bounds(), verdict="saturated")
    interval = estimate.interval.without_bounds() if alone else estimate.interval
    return replace(estimate, interval=interval, difference=difference)


def _saturated(queue: Queue | None) -> bool:
    return queue is not None and queue.saturated


def _of_batches(firsts: Sequence[First], asked: Asked, baseline: str) -> tuple[list[Variant], int, list[str]]:
    count = asked.batches or 0
    results = [first.result for first in firsts]
    batches = [batches_of(first.result, first.observed, count) for first in firsts]
    base = batches[[result.name for result in results].index(baseline)]
    found = [estimates(own, None if own is base else base, asked.level) for own in batches]
    made = _variants(results, found, batches, [[first.replicate] for first in firsts], baseline)
    alike = [correlation(first.replicate, count) for first in firsts]
    return [replace(one, correlation=own) for one, own in zip(made, alike, strict=True)], count, []


def _of_sessions(
    variants: Sequence[tuple[str, Scenario]], firsts: Sequence[First], asked: Asked, baseline: str
) -> tuple[list[Variant], int, list[str]]:
    results = [first.result for first in firsts]
    requests = [first.observed.by_request() for first in firsts]
    runs = [(scenario, result.seed) for (_, scenario), result in zip(variants, results, strict=True)]
    groups = grouping(runs, requests)
    each = [traced(*one) for one in zip(results, requests, groups.drawn(results[0].seed), strict=True)]
    base = each[[result.name for result in results].index(baseline)]
    found = [session_estimates(own, None if own is base else base, groups.count, asked.level) for own in each]
    alone = [[first.replicate] for first in firsts]
    said = session_notes(groups, variants[0][1].settings.workload.trace or "")
    return _variants(results, found, alone, alone, baseline), groups.count, said
