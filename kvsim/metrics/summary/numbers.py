"""From the recorders of a run to the numbers people read: the `metrics` and `pools` of the JSON contract.

Everything is exact up to the last division: shares are quotients of integrals, latencies are taken from the request
records, and only the inter-token latency comes from a histogram.
"""

from dataclasses import asdict
from typing import Any

from kvsim.metrics.prefix import prefix_metrics
from kvsim.metrics.requests import Marks
from kvsim.metrics.summary.run import Run, Slo, measured, stretches
from kvsim.metrics.summary.tenants import tenant_metrics
from kvsim.metrics.summary.values import ratio, shares, spread
from kvsim.metrics.window import Totals
from kvsim.request import PS_PER_S
from kvsim.step import CAUSES, CLASSES, ENDS


def metrics(run: Run) -> dict[str, Any]:
    """The `metrics` object of the JSON contract; a number that does not exist is None."""
    opened_ps, closes_ps, totals = measured(run)
    pool = run.memory.pool_slots
    length_ps = totals.time_ps
    log = run.requests
    marks, time = log.marks(), stretches(run)
    inside, out = marks.arrived_in(time), marks.finished_in(time)
    done = marks.finished(inside)
    return {
        "pool_tokens": pool or None,
        "pool_blocks": None if run.block_size is None else pool // run.block_size,
        "mean_share": shares(totals.slots_ps, pool * length_ps),
        "peak_share": shares(totals.peaks, pool),
        "mean_running": ratio(totals.running_ps, length_ps),
        "max_running": totals.max_running,
        "mean_waiting": ratio(totals.stay_ps - totals.requests_ps, length_ps),
        "arrived": log.arrived,
        **{end: marks.ends[end] for end in ENDS},
        "preemptions": log.preemptions,
        "lost_tokens": marks.lost_tokens,
        "recomputed_tokens": marks.recomputed_tokens,
        "hit_tokens": marks.hit_tokens,
        "rehit_tokens": marks.rehit_tokens,
        "device_bytes": run.device_bytes,
        "swapped_tokens": marks.swapped_tokens,
        **asdict(run.moved),
        "padding_tokens": run.padding_tokens,
        "padding_context_tokens": run.padding_context_tokens,
        "upkeep": asdict(run.upkeep),
        "shared_share": ratio(totals.shared_ps, pool * length_ps),
        "saved_share": ratio(totals.shared_ps, _allocated_ps(totals) + totals.shared_ps),
        "duplicate_share": None if run.caches else ratio(totals.duplicate_ps, pool * length_ps),
        "fragmentation": ratio(totals.scattered_ps, _free_ps(totals)) if run.memory.has_holes else None,
        "unusable_share": ratio(totals.unusable_ps, totals.free_waiting_ps) if run.memory.has_holes else None,
        "blocked": {cause: marks.causes[cause] for cause in CAUSES},
        **prefix_metrics(run.residency if run.caches else None, log, inside),
        "queue_s": spread(marks.queue_ps(inside)),
        "prefill_s": spread(marks.prefill_ps(inside)),
        "ttft_s": spread(marks.ttft_ps(inside)),
        "tpot_s": spread(marks.tpot_ps(done)),
        "itl_s": run.gaps.spread(PS_PER_S) if length_ps else None,
        "e2e_s": spread(marks.e2e_ps(done)),
        "output_tokens_per_s": ratio(totals.tokens * PS_PER_S, length_ps),
        "requests_per_s": ratio(sum(out) * PS_PER_S, length_ps),
        "goodput_per_s": _goodput_per_s(marks, out, run.slo, length_ps),
        "slo_classes": _by_class(marks, inside, out, run.slo, length_ps),
        **tenant_metrics(
            marks,
            inside,
            out,
            goodput_per_s=lambda own: _goodput_per_s(marks, own, run.slo, length_ps),
            pool_token_ps=pool * run.end_ps,
            caches=run.caches,
        ),
        "simulated_s": run.end_ps / PS_PER_S,
        "steps": run.memory.steps,
        "clipped_outputs": log.clipped,
        "window_s": [opened_ps / PS_PER_S, closes_ps / PS_PER_S],
        "measured_s": length_ps / PS_PER_S,
    }


def _goodput_per_s(marks: Marks, out: bytearray, slo: Slo, length_ps: int) -> float | None:
    return ratio(_good(marks, out, slo) * PS_PER_S, length_ps) if slo.any else None


def _good(marks: Marks, out: bytearray, slo: Slo) -> int:
    """How many of those that finished met every goal that they had."""
    if not slo.classes:
        return marks.how_many(out, slo.met)
    own = sum(marks.how_many(marks.of_class(name, out), goals.met) for name, goals in slo.classes.items())
    return own + marks.how_many(marks.of_class(None, out), slo.met)


def _by_class(
    marks: Marks, inside: bytearray, out: bytearray, slo: Slo, length_ps: int
) -> dict[str, dict[str, Any]] | None:
    """What became of the requests of each class of service that has goals of its own; None where none has.

    `met_share` is that of all that arrived in the window: of them so many finished and met every goal.
    """
    if not slo.classes:
        return None
    found = {}
    for name, goals in slo.classes.items():
        arrived = marks.of_class(name, inside)
        done = marks.finished(arrived)
        good = marks.how_many(marks.of_class(name, out), goals.met)
        found[name] = {
            "arrived": sum(arrived),
            "finished": sum(done),
            "met_share": ratio(marks.how_many(done, goals.met), sum(arrived)),
            "goodput_per_s": ratio(good * PS_PER_S, length_ps),
            "ttft_s": spread(marks.ttft_ps(arrived)),
            "tpot_s": spread(marks.tpot_ps(done)),
            "e2e_s": spread(marks.e2e_ps(done)),
        }
    return found


def _free_ps(totals: Totals) -> int:
    """Integral of all free slots, those lost to shape included."""
    slots_ps = dict(zip(CLASSES, totals.slots_ps, strict=True))
    return slots_ps["free"] + slots_ps["external"] - totals.rounding_ps


def _allocated_ps(totals: Totals) -> int:
    """Integral of the slots that somebody holds."""
    slots_ps = dict(zip(CLASSES, totals.slots_ps, strict=True))
    return sum(totals.slots_ps) - slots_ps["free"] - slots_ps["cached"] - slots_ps["external"]


def pools(run: Run) -> list[dict[str, Any]]:
    """The pools of the run, keyed by replica, rank, tier and group."""
    _, _, totals = measured(run)
    pool = run.memory.pool_slots
    host = {
        "replica": 0,
        "rank": 0,
        "tier": "host",
        "group": 0,
        "tokens": run.host_slots,
        "blocks": None,
        "mean_share": {"used": ratio(totals.host_ps, run.host_slots * totals.time_ps)},
        "peak_share": {"used": ratio(totals.host_peak, run.host_slots)},
    }
    return [
        {
            "replica": 0,
            "rank": 0,
            "tier": "gpu",
            "group": 0,
            "tokens": pool or None,
            "blocks": None if run.block_size is None else pool // run.block_size,
            "mean_share": shares(totals.slots_ps, pool * totals.time_ps),
            "peak_share": shares(totals.peaks, pool),
        },
        *([host] if run.host_slots else []),
    ]
