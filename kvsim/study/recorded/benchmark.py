"""A simulated run in the form of the results of `vllm bench serve --save-result --save-detailed`.

The keys are those of vLLM's `benchmarks/serve.py` (Apache-2.0; read, not copied). What only a clock on a wall or a
tokenizer knows is left empty: `generated_texts` are "", `date` is absent, so that equal runs leave equal files. Gaps
between tokens are not recorded one by one: `itls` has each request's mean gap as often as it had gaps, which leaves
its TPOT and E2E as they are.
"""

import json
from typing import Any

import numpy as np

from kvsim.metrics.result import Result
from kvsim.study.recorded.measured import Column
from kvsim.study.recorded.simulated import column_of

PERCENTILES = (50, 90, 99)
MILLI = 1e3
NANO_DIGITS = 9


def bench_serve(result: Result) -> dict[str, Any]:
    """The result of a benchmark client that had sent the run's requests; those that did not finish have an error.

    Raises ValueError where no request arrived.
    """
    table = result.tables["requests"]
    arrival_s, first_s, end_s = (column_of(table, name) for name in ("arrival_s", "first_token_s", "end_s"))
    outputs = column_of(table, "generated_tokens")
    if not len(arrival_s):
        raise ValueError("no request arrived")
    done = np.array([end == "finished" for end in table["end"]], dtype=bool)
    began_s = float(np.min(arrival_s))
    duration = float(np.nanmax(end_s)) - began_s
    ttft, e2e = first_s - arrival_s, end_s - arrival_s
    gaps = np.maximum(outputs - 1, 0)
    tpot = np.divide(e2e - ttft, gaps, out=np.zeros_like(ttft), where=done & (gaps > 0))
    prompts = [int(tokens) for tokens in table["prompt_tokens"]]
    tokens_in, tokens_out = float(sum(np.array(prompts)[done])), float(outputs[done].sum())
    several = done & (gaps > 0)
    settings = {key: one["value"] for key, one in result.scenario_resolved.items()}
    found: dict[str, Any] = {
        "backend": "kvsim",
        "label": result.name,
        "model_id": settings["model.name"],
        "tokenizer_id": None,
        "num_prompts": len(arrival_s),
        "request_rate": None,
        "burstiness": None,
        "max_concurrency": None,
        "duration": duration,
        "completed": int(done.sum()),
        "failed": int((~done).sum()),
        "total_input_tokens": int(tokens_in),
        "total_output_tokens": int(tokens_out),
        "request_throughput": float(done.sum()) / duration,
        "request_goodput": None,
        "output_throughput": tokens_out / duration,
        "total_token_throughput": (tokens_in + tokens_out) / duration,
        "input_lens": prompts,
        "output_lens": [int(tokens) if ok else 0 for tokens, ok in zip(outputs, done, strict=True)],
        "ttfts": [float(value) if ok else 0.0 for value, ok in zip(ttft, done, strict=True)],
        "itls": [
            [round(float(mean), NANO_DIGITS)] * int(n) if ok else []
            for mean, n, ok in zip(tpot, gaps, done, strict=True)
        ],
        "start_times": [float(value) for value in arrival_s],
        "generated_texts": [""] * len(arrival_s),
        "errors": ["" if end == "finished" else str(end) for end in table["end"]],
        "max_output_tokens_per_s": None,
        "max_concurrent_requests": _most_at_once(arrival_s[done], end_s[done]),
        "rtfx": 0.0,
    }
    itl_s = result.metrics["itl_s"]
    for name, values in (("ttft", ttft[done]), ("tpot", tpot[several]), ("e2el", e2e[done])):
        found |= _statistics(name, values)
    if itl_s is not None:
        found |= {"mean_itl_ms": MILLI * itl_s["mean"], "median_itl_ms": MILLI * itl_s["p50"]}
        found |= {f"p{p}_itl_ms": MILLI * itl_s[f"p{p}"] for p in PERCENTILES if f"p{p}" in itl_s}
    return found


def bench_serve_text(result: Result) -> str:
    """The file: one line of JSON, as the benchmark writes it."""
    return json.dumps(bench_serve(result), allow_nan=False) + "\n"


def _statistics(name: str, values_s: Column) -> dict[str, float | None]:
    """Milliseconds as the benchmark gives them; None where no request has one."""
    if not len(values_s):
        keys = ("mean", "median", "std", *(f"p{p}" for p in PERCENTILES))
        return {f"{key}_{name}_ms": None for key in keys}
    values = MILLI * values_s
    return {
        f"mean_{name}_ms": float(values.mean()),
        f"median_{name}_ms": float(np.median(values)),
        f"std_{name}_ms": float(values.std()),
        **{f"p{p}_{name}_ms": float(np.percentile(values, p)) for p in PERCENTILES},
    }


def _most_at_once(start_s: Column, end_s: Column) -> int:
    """The most requests in the system at one moment; who leaves makes room for who comes at that moment."""
    moments = np.concatenate([start_s, end_s])
    change = np.concatenate([np.ones_like(start_s), -np.ones_like(end_s)])
    order = np.lexsort((change, moments))
    return int(np.cumsum(change[order]).max(initial=0))
