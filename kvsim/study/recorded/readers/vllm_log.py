"""The statistics lines of a vLLM server's log, one every ten seconds unless set otherwise.

    INFO 03-19 07:08:57 [loggers.py:259] Engine 000: Avg prompt throughput: 2.3 tokens/s, Avg generation throughput:
    0.5 tokens/s, Running: 12 reqs, Waiting: 3 reqs, Preemptions: 4, GPU KV cache usage: 87.1%,
    Prefix cache hit rate: 41.0%

Older releases write `Swapped: .. reqs, Pending: .. reqs` in place of `Waiting`; what stands between is skipped.
"""

import re
from pathlib import Path

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Measured
from kvsim.study.recorded.readers.text import middle_gap, number, one_of, series_of, since_start

MARK = "Avg generation throughput:"
INTERVAL_S = 10.0
"""vLLM's VLLM_LOG_STATS_INTERVAL unless set."""
PERCENT = 100.0

_CLOCK = re.compile(r"\b(\d{2}):(\d{2}):(\d{2})\b")
_ENGINE = re.compile(r"Engine (\d+):")
_FIELDS = {
    "prompt_tokens_per_s": re.compile(r"Avg prompt throughput: ([^ ,]+) tokens/s"),
    "output_tokens_per_s": re.compile(r"Avg generation throughput: ([^ ,]+) tokens/s"),
    "running": re.compile(r"Running: ([^ ,]+) reqs"),
    "waiting": re.compile(r"(?:Waiting|Pending): ([^ ,]+) reqs"),
    "kv_share": re.compile(r"(?:GPU )?KV cache usage: ([^ ,%]+)%"),
    "hit_rate": re.compile(r"Prefix cache hit rate: (?:GPU: )?([^ ,%]+)%"),
}
_NEEDED = ("running", "waiting", "kv_share")
_PREEMPTIONS = re.compile(r"Preemptions: (\d+)")


def read(path: Path, text: str) -> Measured:
    """Gauges and throughputs over the time of the log; `Preemptions`, where it is written, are those of an interval."""
    rows, clocks, engines, preemptions, counted = [], [], set(), 0, False
    for line, entry in enumerate(text.splitlines(), 1):
        if MARK not in entry:
            continue
        place = f"{path}, line {line}"
        clock = _CLOCK.search(entry.partition(MARK)[0])
        if clock is None:
            raise InputError(
                f"{place}: has no time such as 07:08:57 before the numbers; keep the log as vLLM writes it"
            )
        told = _told(entry, place)
        engine = _ENGINE.search(entry)
        engines.add(engine[1] if engine else "000")
        lost = _PREEMPTIONS.search(entry)
        if lost:
            preemptions, counted = preemptions + int(lost[1]), True
        hours, minutes, seconds = (int(part) for part in clock.groups())
        clocks.append(3600.0 * hours + 60.0 * minutes + seconds)
        rows.append(told)
    if not rows:
        raise InputError(f"{path}: has no line with {MARK!r}; keep vLLM's log of statistics on")
    one_of(engines, path, "engines")
    interval = middle_gap(clocks, INTERVAL_S)
    active = [index for index, told in enumerate(rows) if told["running"] or told.get("output_tokens_per_s")]
    first = active[0] if active else 0
    times = since_start(clocks[first:], interval)
    return Measured(
        source=path.name,
        series=series_of(list(zip(times, rows[first:], strict=True))),
        preemptions=preemptions if counted else None,
        hit_rate=rows[-1].get("hit_rate"),
        notes=(f"{path.name}: the run is taken to begin {interval:g} s before the first line in which anything runs.",),
    )


def _told(entry: str, place: str) -> dict[str, float]:
    """Gauges and rates of a line, as far as it tells them."""
    told = {}
    for name, pattern in _FIELDS.items():
        found = pattern.search(entry)
        if found is None:
            if name in _NEEDED:
                raise InputError(f"{place}: does not tell {name}; a line tells Running, Waiting and GPU KV cache usage")
            continue
        share = name in ("kv_share", "hit_rate")
        value = number(found[1], f"{place}: {name}", most=PERCENT if share else None)
        told[name] = value / PERCENT if share else value
    return told
