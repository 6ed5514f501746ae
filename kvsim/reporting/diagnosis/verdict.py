"""What a diagnosis comes to, in a few sentences."""

from kvsim.reporting.finding import three_digits
from kvsim.study.diagnosis.diagnose import FELT, Diagnosis, Numbers, Tried
from kvsim.study.diagnosis.limits import FELT as WAITS
from kvsim.study.diagnosis.limits import Limits
from kvsim.study.diagnosis.pressures import ORGANISATION, REUSE
from kvsim.study.diagnosis.static import CAUTION, Static

IDLE = 0.01
"""A GPU that is idle for less is not worth a word."""

REPEATS = 0.05
"""Prompts that repeat for at least this share of their tokens are worth a word where memory is not short."""


def verdict(found: Diagnosis) -> str:
    """Which pressure dominates and what cures it; or that none does, and what limits the run instead."""
    if found.limits.limit == "nothing ran":
        return _nothing(found)
    if found.dominant is None:
        return _none(found)
    said = [f"{found.dominant.capitalize()} presses most: {_why(found)}. {_short(found)}."]
    own, best = found.best_of_dominant, found.best
    if own is not None:
        said.append(f"Its cure, {_brings(own, found.before)}.")
    elif any(one.cure.pressure == found.dominant for one in found.cured):
        said.append("None of its cures brings anything that is felt.")
    else:
        said.append("It has no cure here that is not there already.")
    if best is not None and best is not own:
        said.append(f"More is brought by {_brings(best, found.before)}.")
    said += _with_room(found)
    return " ".join(said)


def _nothing(found: Diagnosis) -> str:
    """Why nothing ran, and what would let some requests."""
    never, best = found.shortage.never_fit, found.best
    if not never:
        return "Nothing ran: no request computed anything, and no KV was kept."
    said = f"Nothing ran: the pool could never hold any of the {never:,} requests that were rejected."
    return said if best is None else f"{said} Some run with {_brings(best, found.before)}."


def _with_room(found: Diagnosis) -> list[str]:
    """What a pool without bounds would change, where that is nothing, or for the worse."""
    before, room = found.before, found.yardstick
    gain = None if room is None else room.gain(before)
    if room is None or gain is None:
        return []
    if gain < FELT:
        return [
            f"But a pool without bounds changes neither rate nor TTFT p99 for the better by {percent(FELT)} %: memory "
            f"runs short, and is not what limits this run. {_limit(found.limits)}"
        ]
    if (
        before.goodput_per_s
        and room.goodput_per_s is not None
        and room.goodput_per_s < before.goodput_per_s * (1 - FELT)
    ):
        return [
            f"More memory alone would not do: with a pool without bounds {three_digits(room.mean_running)} run at "
            f"once, and goodput is {three_digits(room.goodput_per_s)} /s, since fewer requests meet their goals."
        ]
    return []


def _none(found: Diagnosis) -> str:
    peak, ideal, now = found.before.peak_used_share, found.pressures.unbounded_hit_rate, found.pressures.hit_rate
    full = "" if peak is None else f" (at most {percent(peak)} % of it holds KV)"
    said = f"The pool is never full{full}: KV memory is not what limits this run. {_limit(found.limits)}"
    if ideal is not None and ideal - (now or 0.0) >= REPEATS:
        said += (
            f" Prompts repeat, though: a cache would find {percent(ideal)} % of their tokens, and save computing them."
        )
    return said


def _limit(limits: Limits) -> str:
    """What limits a run where memory does not, as a sentence."""
    if limits.limit == "batch limit":
        full = percent(limits.batch_full_share)
        return (
            f"The batch does: {full} % of the time requests wait while {limits.max_num_seqs:,} run "
            "(engine.max_num_seqs)."
        )
    if limits.limit == "compute":
        if (limits.waiting_share or 0.0) >= WAITS:
            waits = percent(limits.waiting_share)
            return f"Compute does: {waits} % of the time requests wait for a place in a step."
        missed = percent(1 - (limits.met_share or 0.0))
        return f"Compute does: {missed} % of the requests miss their goals although nobody waits."
    if limits.limit == "low load":
        idle = 1 - (limits.busy_share or 0.0)
        rests = f", and the GPU is idle {percent(idle)} % of the time" if idle >= IDLE else ""
        return f"Nothing does at this load: nobody waits{rests}."
    return "What does is not known of a fleet."


def _why(found: Diagnosis) -> str:
    pressures = found.pressures
    if found.dominant == ORGANISATION:
        return f"{percent(pressures.organisation)} % of the slots taken hold no valid KV"
    if found.dominant == REUSE:
        now = "nothing is cached" if pressures.hit_rate is None else f"now {percent(pressures.hit_rate)} %"
        return (
            f"{percent(pressures.reuse)} % of the slots taken hold KV that was computed before; a cache without "
            f"bounds would find {percent(pressures.unbounded_hit_rate)} % of the prompt tokens ({now})"
        )
    return (
        f"{percent(pressures.representation)} % of the slots taken hold KV that is valid and needed, so that fewer "
        "bytes a token are what makes room"
    )


def _short(found: Diagnosis) -> str:
    """How often the pool was short, whatever for."""
    short = found.shortage
    count = sum(short.blocked.values())
    parts = [f"was short {count:,} time{'' if count == 1 else 's'}"] if count else []
    parts += (
        [f"preempted {short.preemptions:,} time{'' if short.preemptions == 1 else 's'}"] if short.preemptions else []
    )
    parts += [f"could never hold {short.never_fit:,}"] if short.never_fit else []
    parts += [f"lost {short.regret_tokens:,} prompt tokens that were wanted again"] if short.regret_tokens else []
    return f"The pool {', '.join(parts)}"


def _brings(one: Tried, before: Numbers) -> str:
    after = one.numbers
    assert after is not None
    what = "requests" if before.goodput_per_s is None else "goodput"
    parts = [f"{what} {three_digits(before.rate)} -> {three_digits(after.rate)} /s"]
    parts.append(f"TTFT p99 {three_digits(before.ttft_p99_s)} -> {three_digits(after.ttft_p99_s)} s")
    if one.cure.pressure == ORGANISATION:
        parts.append(f"waste {percent(before.waste_share)} -> {percent(after.waste_share)} %")
    return f"{one.cure.name}: {', '.join(parts)}"


def percent(share: float | None) -> str:
    """A share in per cent, with the digits that count."""
    if share is None:
        return "-"
    return f"{100 * share:.0f}" if share >= 0.0995 or share < 0.0005 else f"{100 * share:.1f}"


def static_lines(found: Static) -> list[str]:
    """The static form: a line a pressure, and the caution."""
    return [
        f"organisation: {found.tokens:,} tokens are {found.blocks:,} blocks with {found.wasted_slots:,} wasted slots",
        f"representation: a latent of {found.latent_elements:,} saves {found.saved_share:.4f} of the "
        f"{found.kv_elements:,} elements of K and V",
        f"reuse: {found.reusable_tokens:,} of the {found.tokens:,} tokens are a reusable prefix "
        f"({percent(found.reusable_share)} %)",
        CAUTION,
    ]
