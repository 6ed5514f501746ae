"""What was measured, from the files that servers and benchmarks leave: one file a form, found by how it looks."""

from collections.abc import Sequence
from pathlib import Path

from kvsim.errors import InputError
from kvsim.study.recorded.measured import Measured, together
from kvsim.study.recorded.readers import bench_serve, prometheus, sglang_log, tables, vllm_log
from kvsim.study.recorded.readers.text import text_of

FORMS = (
    "a table of requests (in_len, out_len, arrival_s, first_token_s, last_token_s), a time series (t, running, "
    "waiting, kv_cache_pct), a log of vLLM or SGLang, a scrape of their /metrics, or a result of `vllm bench serve`"
)


def read_measured(paths: Sequence[Path], *, interval_s: float | None = None) -> Measured:
    """One run as `paths` tell it together; `interval_s` is the time between scrapes that have none of their own.

    Raises InputError naming file and place where one is not of a known form, or two tell the same.
    """
    return together([_read(path, interval_s) for path in paths])


def _read(path: Path, interval_s: float | None) -> Measured:
    text = text_of(path)
    head = text.partition("\n")[0]
    if text.lstrip().startswith(("{", "[")) and not head.startswith("[2"):
        if bench_serve.is_result(text):
            return bench_serve.read(path, text)
        if '"engine_kwargs"' in text:
            raise InputError(f"{path}: describes a run (META); give it first, and here what was measured")
        raise InputError(f"{path}: is a JSON of another kind; {bench_serve.FORM}")
    if tables.is_requests(head):
        return tables.read_requests(path, text)
    if tables.is_series(head):
        return tables.read_series(path, text)
    if vllm_log.MARK in text:
        return vllm_log.read(path, text)
    if any(mark in text for mark in sglang_log.MARKS):
        return sglang_log.read(path, text)
    if prometheus.is_scrape(text):
        return prometheus.read(path, text, interval_s=interval_s or prometheus.INTERVAL_S)
    raise InputError(f"{path}: is of no known form; what was measured is {FORMS}")
