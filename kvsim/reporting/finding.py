"""What a run or a comparison shows, in words: the finding, the measured window, where the numbers come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.metrics.requests.refusals import Refusals
from kvsim.metrics.result import Result
from kvsim.reporting.comparison import beside, waste_share
from kvsim.study.notes import LEFT_RANGE, left_range_together
from kvsim.units import GIB

LEGEND = (
    "Memory is in shares of the pool, mean / peak. waste: of the slots neither free nor cached, the share that holds "
    "no valid KV of a live request."
)

SOURCES = {"timing": "step times"}
"""What people call a family of numbers, where that is not its key."""

MEANINGS = {("timing", "datasheet"): "estimated from data sheets"}
"""What a source amounts to, where its name alone does not tell."""

TURNS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
"""Embeddings, overrides and isolates of the Unicode bidirectional algorithm, with nothing in their place."""

ALIKE = 1.1
"""Times within this ratio, and wastes within a percentage point, are no finding."""


def finding(results: Sequence[Result]) -> str:
    """Say in a few sentences what these results show, and first of all where nothing was served.

    Raises ValueError for an empty `results`.
    """
    if not results:
        raise ValueError("results must hold at least one result")
    served = [result for result in results if result.metrics["finished"]]
    unserved = [result for result in results if result.metrics["arrived"] and not result.metrics["finished"]]
    said = _told([(result, _unserved(result)) for result in unserved], results)
    if served:
        said.append(_contrast(served))
    partly = [result for result in served if result.metrics["rejected"]]
    said += _told([(result, _refused(result)) for result in partly], results)
    return " ".join(said) or "No request arrived."


def legend(results: Sequence[Result]) -> list[str]:
    """Say how to read the table of these results, and what those of its rows mean whose names do not tell."""
    rows = [f"{label}: {meaning}." for label, (_, meaning) in beside(results).items()]
    samples = who(results) == "sequences"
    return [LEGEND, *rows, *(["running: sequences; each sample of a request is one."] if samples else [])]


def who(results: Sequence[Result]) -> str:
    """What runs and waits: `sequences` where requests have several samples, which are counted each, else `requests`."""
    samples = (result.scenario_resolved.get("workload.samples", {}).get("value", 1) for result in results)
    return "sequences" if any(count > 1 for count in samples) else "requests"


def window(result: Result) -> str:
    """Say over which time the means and latencies are taken: `0 to 239.6 s (to the last arrival)`; "" if unknown."""
    measured_s = result.metrics.get("window_s")
    if not measured_s:
        return ""
    until = result.scenario_resolved.get("window.until", {}).get("value")
    if until == "saturated":
        part = "while requests waited"
    elif measured_s[1] < result.metrics["simulated_s"]:
        part = "to the last arrival"
    else:
        part = "to the end of the run" if measured_s[0] else "the whole run"
    return f"{_seconds(measured_s[0])} to {_seconds(measured_s[1])} s ({part})"


def measured(result: Result) -> list[str]:
    """Say what the measured window is, and what is counted beyond it, in at most one line."""
    over = window(result)
    beyond = "finished, rejected, preemptions, tokens lost and times blocked count the whole run"
    return [f"measured: {over}; {beyond}"] if over else []


def sources(result: Result, *, price: bool = True) -> list[str]:
    """Say where each family of numbers comes from and how far latencies are expected to be off, one line each.

    Without `price` nothing is said of prices, where no costs are shown.
    """
    return sources_of(result.provenance, result.expected_error, price=price)


def sources_of(
    provenance: Mapping[str, str], error: Mapping[str, Any] | None = None, *, price: bool = True
) -> list[str]:
    """Say it of the provenance and the error to expect, if that is known."""
    lines = []
    for family, source in provenance.items():
        if family == "price" and not price:
            continue
        lines.append(f"{SOURCES.get(family, family)}: {MEANINGS.get((family, source), source)}")
        if family == "timing" and error:
            lines.append(expected(error))
    return lines


def expected(error: Mapping[str, Any]) -> str:
    """The error to expect of latencies, and of which runs that is: medians and 90th percentiles of |error|."""
    told = [
        f"{name} {_percent(error[f'{key}_median'])} median, {_percent(error[f'{key}_p90'])} p90"
        for name, key in (("TPOT", "tpot"), ("TTFT", "ttft"))
        if error.get(f"{key}_median") is not None
    ]
    return f"expected error: {'; '.join(told)} ({error['basis']})" if told else f"expected error: {error['basis']}"


def ledger(result: Result) -> list[str]:
    """Say how the card's memory is divided at the largest step, in at most one line."""
    device = result.metrics.get("device_bytes")
    if not device:
        return []
    parts = [f"{name} {three_digits(device[name] / GIB)}" for name in ("weights", "pool", "workspace", "other")]
    left = device["left"] / GIB
    parts.append(f"left {three_digits(left)}" if left >= 0 else f"{three_digits(-left)} too much")
    return [f"card: {three_digits(device['card'] / GIB)} GiB a GPU = {' + '.join(parts)} (largest step)"]


def shared(lines: Sequence[Sequence[str]], results: Sequence[Result]) -> list[str]:
    """Every line once, in order; one that does not hold for all results names those it holds for."""
    return shared_by([result.name for result in results], lines)


def shared_by(names: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The same for whatever has these names."""
    said: dict[str, list[str]] = {}
    for name, own in zip(names, lines, strict=True):
        for line in own:
            said.setdefault(line, []).append(name)
    return [line if len(of) == len(names) else f"{line} ({', '.join(of)})" for line, of in said.items()]


def shared_notes(results: Sequence[Result]) -> list[str]:
    """The notes of these results as `shared` has them; last each fitted range that some leave, with what they have."""
    ranges = {result.name: [note for note in result.notes if note.startswith(LEFT_RANGE)] for result in results}
    others = [[note for note in result.notes if not note.startswith(LEFT_RANGE)] for result in results]
    return [*shared(others, results), *left_range_together(ranges)]


def straight(text: str) -> str:
    """A text without the marks that would turn around what stands beside it."""
    return text.translate(TURNS)


def three_digits(number: float | None) -> str:
    """Return a number with the three digits that count, `-` where there is none."""
    if number is None:
        return "-"
    if 0 < abs(number) < 0.005:
        return f"{number:.2g}"  # with two decimals nothing of it would be left
    whole_digits = len(str(int(number)))
    return f"{number:,.{max(0, 3 - whole_digits)}f}"


def _contrast(results: Sequence[Result]) -> str:
    opening = f"{_pool(results)}, {_traffic(results)}"
    best, worst = _extremes(results)
    if best is worst:
        ttft_s = _ttft_s(best)
        return f"{opening}: {_doing(best, whole=True)}" + (
            "." if ttft_s is None else f" (TTFT p50 {three_digits(ttft_s)} s)."
        )
    first_s, last_s = _ttft_s(best), _ttft_s(worst)
    latency = (
        ""
        if first_s is None or last_s is None
        else f" (TTFT p50 {three_digits(first_s)} s against {three_digits(last_s)} s)"
    )
    return f"{opening}: {_doing(best, whole=True)}; {_doing(worst, whole=False)}{latency}."


def _extremes(results: Sequence[Result]) -> tuple[Result, Result]:
    """The two results that differ most: by the median TTFT, or by waste where all wait alike."""
    timed = sorted((r for r in results if _ttft_s(r) is not None), key=lambda r: _ttft_s(r) or 0.0)
    if len(timed) > 1 and (_ttft_s(timed[-1]) or 0.0) > ALIKE * (_ttft_s(timed[0]) or 0.0):
        return timed[0], timed[-1]
    wasteful = sorted(results, key=lambda r: waste_share(r.metrics) or 0.0)
    return wasteful[0], wasteful[-1]


def _doing(result: Result, whole: bool) -> str:
    waste, running = waste_share(result.metrics), result.metrics["mean_running"]
    found = result.metrics.get("hit_rate")
    parts = (
        [] if found is None else [f"finds {_percent(found)} of {'all prompt tokens' if whole else 'them'} in its cache"]
    )
    if waste is not None:
        parts.append(f"wastes {_percent(waste)}{' of the memory it occupies' if whole else ''}")
    if running is not None:
        count = _whole(running)
        several = who([result])
        parts.append(f"runs {count}" + (f" {several[:-1] if count == '1' else several} at once" if whole else ""))
    told = " and ".join([", ".join(parts[:-1]), *parts[-1:]] if len(parts) > 1 else parts)
    return f"{result.name} {told or 'has nothing to measure'}"


def _pool(results: Sequence[Result]) -> str:
    pools = sorted({result.metrics["pool_tokens"] for result in results} - {None})
    if not pools:
        return "No pool"
    return f"Pool {pools[0]:,} tokens" if len(pools) == 1 else f"Pools of {pools[0]:,} to {pools[-1]:,} tokens"


def _traffic(results: Sequence[Result]) -> str:
    arrived = sorted({result.metrics["arrived"] for result in results})
    if len(arrived) > 1:
        return f"{arrived[0]:,} to {arrived[-1]:,} requests"
    return f"{arrived[0]:,} request{'' if arrived[0] == 1 else 's'}"


def _unserved(result: Result) -> str:
    metrics = result.metrics
    arrived = metrics["arrived"]
    if metrics["rejected"] == arrived:
        who = "The one request was" if arrived == 1 else f"All {arrived:,} requests were"
        return f"{who} rejected: {_why(result)}."
    ends = [f"{metrics[end]:,} {end}" for end in ("rejected", "aborted", "cancelled", "unfinished") if metrics[end]]
    return f"None of the {arrived:,} requests finished: {', '.join(ends)}."


def _refused(result: Result) -> str:
    rejected, arrived = result.metrics["rejected"], result.metrics["arrived"]
    return f"{rejected:,} of {arrived:,} requests {'was' if rejected == 1 else 'were'} rejected: {_why(result)}."


def _why(result: Result) -> str:
    """Why requests can never fit: the shortest prompt of those refused tells it where all were, else the longest."""
    turned_away = result.metrics["blocked"].get("queue", 0)
    if not turned_away:
        return _never(result)
    most = result.scenario_resolved.get("engine.max_queued_requests", {}).get("value")
    queue = f"{'' if most is None else f'{most:,} '}others waited already (engine.max_queued_requests)"
    if turned_away == result.metrics["rejected"]:
        return queue
    return f"{turned_away:,} since {queue}; {_never(result)}"


def _never(result: Result) -> str:
    refusals = result.refusals or _refusals(result.tables)
    least, greatest = refusals.least, refusals.greatest
    assert least is not None
    assert greatest is not None
    every = result.metrics["rejected"] == result.metrics["arrived"]
    prompt, _, need = least if every else greatest
    alike = least.prompt_tokens == greatest.prompt_tokens
    subject = "a prompt of" if alike else f"{'even the shortest' if every else 'the longest'} prompt,"
    subject = f"{subject} {prompt:,} tokens{'' if alike else ','}"
    pool = result.metrics["pool_tokens"]
    if pool and need > pool:
        return f"{subject} needs room for {need:,} tokens and does not fit the pool of {pool:,}"
    limit = result.scenario_resolved.get("engine.max_model_len", {}).get("value")
    return f"{subject} leaves no room for an answer in max_model_len{f' {limit:,}' if limit else ''}"


def _refusals(tables: Mapping[str, Mapping[str, Sequence[Any]]]) -> Refusals:
    """The same from the tables of a run."""
    if "requests" not in tables:
        return Refusals()
    requests, events = tables["requests"], tables["events"]
    columns = (events.get(name, ()) for name in ("request", "outcome", "cause", "need_tokens"))
    rejected = [(who, cause, need) for who, outcome, cause, need in zip(*columns, strict=True) if outcome == "reject"]
    turned_away = {who for who, cause, _ in rejected if cause == "queue"}
    needs = {who: need for who, _, need in rejected}
    refusals = Refusals()
    for prompt, number, end in zip(requests["prompt_tokens"], requests["id"], requests["end"], strict=True):
        if end == "rejected" and number not in turned_away:
            refusals.add(prompt, number, needs.get(number, 0))
    return refusals


def _told(sentences: Sequence[tuple[Result, str]], results: Sequence[Result]) -> list[str]:
    """Each sentence once; those that do not hold for all results name those they hold for."""
    names: dict[str, list[str]] = {}
    for result, text in sentences:
        names.setdefault(text, []).append(result.name)
    return [
        text if len(holders) == len(results) else f"{', '.join(holders)}: {text[0].lower()}{text[1:]}"
        for text, holders in names.items()
    ]


def _ttft_s(result: Result) -> float | None:
    spread = result.metrics["ttft_s"]
    return None if spread is None else float(spread["p50"])


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.0095 or share < 0.0005 else f"{share * 100:.1f} %"


def _whole(number: float) -> str:
    return f"{number:,.0f}" if number >= 0.95 else f"{number:.1f}"


def _seconds(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0") if number >= 0.1 or not number else f"{number:.2g}"
