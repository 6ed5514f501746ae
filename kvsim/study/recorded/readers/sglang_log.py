"""The batch lines of an SGLang server's log, one for each batch of prompts and each 40 steps of decoding.

    [2026-03-02 14:44:10 TP0] Decode batch, #running-req: 9, #token: 8123, token usage: 0.43, cuda graph: True,
    gen throughput (token/s): 95.33, #queue-req: 1
    [2026-03-02 14:44:11 TP0] Prefill batch, #new-seq: 2, #new-token: 512, #cached-token: 128, token usage: 0.41,
    #running-req: 9, #queue-req: 4

Other fields, and other ranks of one replica than the first, are skipped; `#retracted-req` lines of a full pool count as
preemptions.
"""

import re
from pathlib import Path

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Measured
from kvsim.study.recorded.readers.text import middle_gap, number, one_of, series_of, since_start

MARKS = ("Decode batch", "Prefill batch")
INTERVAL_S = 1.0

_HEAD = re.compile(r"\[(?:\d{4}-\d{2}-\d{2} )?(\d{2}):(\d{2}):(\d{2})((?: [A-Z]+\d+)*)\]")
_RUNNING = re.compile(r"#running-req: ([^ ,]+)")
_QUEUE = re.compile(r"#queue-req: ([^ ,]+)")
_USAGE = re.compile(r"token usage: ([^ ,]+)")
_NEW = re.compile(r"#new-seq: ([^ ,]+)")
_TOKENS = re.compile(r"#new-token: ([^ ,]+)")
_CACHED = re.compile(r"#cached-token: ([^ ,]+)")
_OUTPUT = re.compile(r"gen throughput \(token/s\): ([^ ,]+)")
_RETRACTED = re.compile(r"#retracted_reqs: (\d+)")


def read(path: Path, text: str) -> Measured:
    """Gauges over the time of the log; the hit rate is cached over cached and new tokens of all batches of prompts."""
    rows, clocks, replicas = [], [], set()
    new_tokens = cached_tokens = 0.0
    retracted = 0
    for line, entry in enumerate(text.splitlines(), 1):
        lost = _RETRACTED.search(entry)
        if lost:
            retracted += int(lost[1])
        if not any(mark in entry for mark in MARKS):
            continue
        place = f"{path}, line {line}"
        head = _HEAD.search(entry)
        if head is None:
            raise InputError(f"{place}: has no time such as [2026-03-02 14:44:10] before it; keep the log as it was")
        ranks = dict(re.findall(r"([A-Z]+)(\d+)", head[4]))
        if ranks.get("TP", "0") != "0" or ranks.get("PP", "0") != "0":
            continue
        told = _gauges(entry, place)
        tokens, cached = _TOKENS.search(entry), _CACHED.search(entry)
        if tokens and cached:
            new_tokens += number(tokens[1], f"{place}: #new-token")
            cached_tokens += number(cached[1], f"{place}: #cached-token")
            told["hit_rate"] = cached_tokens / max(1.0, cached_tokens + new_tokens)
        replicas.add(ranks.get("DP", "0"))
        clocks.append(3600.0 * int(head[1]) + 60.0 * int(head[2]) + int(head[3]))
        rows.append(told)
    if not rows:
        raise InputError(f"{path}: has no line of a batch ({' or '.join(MARKS)}); keep SGLang's log of batches on")
    one_of(replicas, path, "ranks DP")
    times = since_start(clocks, middle_gap(clocks, INTERVAL_S))
    asked = new_tokens + cached_tokens
    return Measured(
        source=path.name,
        series=series_of(list(zip(times, rows, strict=True))),
        preemptions=retracted,
        hit_rate=cached_tokens / asked if asked else None,
        notes=(f"{path.name}: the run is taken to begin with the first batch.",),
    )


def _gauges(entry: str, place: str) -> dict[str, float]:
    running, usage, queue = _RUNNING.search(entry), _USAGE.search(entry), _QUEUE.search(entry)
    if running is None or usage is None:
        raise InputError(f"{place}: tells no #running-req or no token usage; keep the line as SGLang writes it")
    told = {
        "running": number(running[1], f"{place}: #running-req"),
        "kv_share": number(usage[1], f"{place}: token usage", most=1.0),
    }
    new, output = _NEW.search(entry), _OUTPUT.search(entry)
    if new is not None:
        told["running"] += number(new[1], f"{place}: #new-seq")
    if queue is not None:
        told["waiting"] = number(queue[1], f"{place}: #queue-req")
    if output is not None:
        told["output_tokens_per_s"] = number(output[1], f"{place}: gen throughput")
    return told
