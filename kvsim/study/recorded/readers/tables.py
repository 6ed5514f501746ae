"""The two tables of a recorded run: its requests, and its gauges over time (LLMServingSim's `bench/examples`)."""

import csv
import io
from pathlib import Path

import numpy as np

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Measured, Requests, Series
from kvsim.study.recorded.readers.text import number, series_of

REQUESTS = ("in_len", "out_len", "arrival_s", "first_token_s", "last_token_s")
SERIES = {
    "running": "running",
    "waiting": "waiting",
    "kv_cache_pct": "kv_share",
    "prompt_throughput": "prompt_tokens_per_s",
    "gen_throughput": "output_tokens_per_s",
}
TIME = "t"
PERCENT = 100.0


def is_requests(head: str) -> bool:
    """Whether a table with this head lists requests, or tries to: any two of the columns."""
    return len(set(REQUESTS) & set(_names(head))) > 1


def is_series(head: str) -> bool:
    """Whether a table with this head is a time series of gauges, or tries to be."""
    return len({TIME, *SERIES} & set(_names(head))) > 1


def read_requests(path: Path, text: str) -> Measured:
    """Requests with lengths and times, sorted by arrival."""
    rows = []
    for place, row in _rows(path, text, REQUESTS):
        prompt, output, arrival_s, first_s, last_s = (
            number(row[name], f"{place}: {name}") for name in REQUESTS
        )  # fmt: skip
        if output < 1 or prompt < 1:
            raise InputError(f"{place}: {prompt:g} and {output:g} tokens; a request has at least one of each")
        if first_s < arrival_s or last_s < first_s:
            raise InputError(
                f"{place}: arrived at {arrival_s:g}, first token at {first_s:g}, last at {last_s:g}; times are "
                "seconds in this order, all of one clock"
            )
        rows.append((arrival_s, prompt, output, first_s - arrival_s, last_s - arrival_s, last_s))
    rows.sort(key=lambda row: row[0])
    came_s, prompts, outputs, ttft_s, e2e_s, ended_s = (np.array(column) for column in zip(*rows, strict=True))
    length_s = float(ended_s.max() - came_s.min())
    return Measured(
        source=path.name,
        requests=Requests(prompt_tokens=prompts, output_tokens=outputs, arrival_s=came_s, ttft_s=ttft_s, e2e_s=e2e_s),
        output_tokens_per_s=float(outputs.sum()) / length_s if length_s > 0 else None,
    )


def read_series(path: Path, text: str) -> Measured:
    """Gauges over time; KV use in per cent, and absent where it is 0 all the time although somebody runs."""
    needed = (TIME, "running", "waiting")
    rows, before = [], -1.0
    for place, row in _rows(path, text, needed):
        time_s = number(row[TIME], f"{place}: {TIME}")
        if time_s <= before:
            raise InputError(f"{place}: {TIME} is {time_s:g} after {before:g}; moments go on, in seconds")
        before = time_s
        told = {}
        for name, gauge in SERIES.items():
            if name in row:
                value = number(row[name], f"{place}: {name}", most=PERCENT if gauge == "kv_share" else None)
                told[gauge] = value / PERCENT if gauge == "kv_share" else value
        rows.append((time_s, told))
    series = series_of(rows)
    notes: tuple[str, ...] = ()
    use, running = series.get("kv_share"), series.get("running")
    if use is not None and running is not None and not use.any() and running.any():
        kept = {name: column for name, column in series.columns.items() if name != "kv_share"}
        series, notes = Series(series.time_s, kept), (f"{path.name}: KV use is 0 throughout: it was not logged.",)
    return Measured(source=path.name, series=series, notes=notes)


def _names(head: str) -> list[str]:
    return [name.strip() for name in head.split(",")]


def _rows(path: Path, text: str, needed: tuple[str, ...]) -> list[tuple[str, dict[str, str]]]:
    """(place for messages, cells by column) of every row."""
    try:
        names, *lines = [[cell.strip() for cell in cells] for cells in csv.reader(io.StringIO(text))]
    except csv.Error as error:
        raise InputError(f"{path}: is no CSV ({error}); give a table of cells with commas between") from None
    missing = [name for name in needed if name not in names]
    if missing:
        raise InputError(f"{path}: has no column {missing[0]}; needed are {', '.join(needed)}")
    rows = []
    for number_of_row, cells in enumerate(lines, 2):
        if not cells:
            continue
        place = f"{path}, row {number_of_row}"
        if len(cells) != len(names):
            raise InputError(f"{place}: has {len(cells)} cells and the head {len(names)}; give every column a cell")
        rows.append((place, dict(zip(names, cells, strict=True))))
    if not rows:
        raise InputError(f"{path}: has a head and no row; nothing was measured")
    return rows
