"""What a served run is made of, in closed form: decode steps, prompts computed beside them, what the pool lets in.

A closed loop of `batch` clients at steady state: each step decodes the running requests, and every output token of the
replica brings 1 / output of a prompt with it. So a token takes a step plus running / output prompts. Where the pool
holds fewer requests than there are clients, the rest wait: the cliff. An offline batch computes its prompts and decodes
them in as many rounds as the pool needs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.overheads.releases import Release, engine_release
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.capacity.weights.quantization import Scheme, scheme
from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import gpu as gpu_of
from kvsim.errors import InputError
from kvsim.study.validation.served.runs import ServedRun, device_of, known_model
from kvsim.timing.families.interface import Column
from kvsim.timing.fitting.calibration import Calibration
from kvsim.timing.steps.kernels import Kernels, Parts
from kvsim.timing.steps.shapes import Shapes

BUDGET_TOKENS = 8192
"""Prompt tokens that engines compute in one step when they may (vLLM's default of `max_num_batched_tokens` on data
centre cards, SGLang's chunk)."""
MOST_SEQUENCES = 1024
"""Sequences at once where nothing but the pool bounds them (defaults of the engines lie between 256 and 2,048)."""
PARTS = ("linear", "experts", "attention", "collectives", "head")
SCHEMES = {"fp8": "fp8", "fp4": "nvfp4", "int4": "w4a16", "int8": "int8"}
ENGINES = {"vllm": "vllm", "trtllm": "trtllm", "sglang": "sglang", "vllm-2023": "vllm", "vllm-2024": "vllm"}


def features(runs: Sequence[ServedRun], calibration: Calibration) -> dict[str, Column]:
    """Columns, one value a run: `d_*` seconds of a decode step by part, `p_*` of one prompt, `layers`, `sequences` of a
    group in the step, and how often each counts: `steps`, `prompts`, `mixed` (beside decodes), `fronts`; `wait_*` while
    a request waits for room in the pool, `burst_*` of prompts before one's own where all clients begin at once.
    """  # fmt: skip
    found: dict[str, Column] = {}
    for indices in _alike(runs):
        part = _of_one_deployment([runs[index] for index in indices], calibration)
        for name, values in part.items():
            column = found.setdefault(name, np.zeros(len(runs)))
            column[indices] = values
    return found


def _alike(runs: Sequence[ServedRun]) -> list[list[int]]:
    """Runs of one deployment are computed at once."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        groups[run.gpu, run.model, run.layout, run.dtype, run.kv_dtype, run.engine].append(index)
    return list(groups.values())


def _of_one_deployment(runs: Sequence[ServedRun], calibration: Calibration) -> dict[str, Column]:
    first = runs[0]
    model, device = known_model(first.model), device_of(first)
    kernels = Kernels(
        Shapes(model, first.layout, first.dtype),
        device,
        calibration.parameters(device.name),
        kv_dtype=first.kv_dtype,
        prefill=calibration.prefill_kernel(device.name),
    )
    prompt, output = (np.array([getattr(run, name) for run in runs]) for name in ("prompt", "output"))
    pool = pool_tokens(first)
    fits = np.maximum(1.0, pool / (prompt + output / 2))
    batch = np.array([MOST_SEQUENCES if run.batch is None else run.batch for run in runs])
    running = np.minimum(batch, fits)
    decode = kernels.decode(running, prompt + output / 2)
    # Short prompts are computed together as far as a step's budget of tokens goes.
    together = np.maximum(1.0, np.minimum(running, np.floor(BUDGET_TOKENS / prompt)))
    prefill = _prompts(kernels, prompt, together)
    groups = first.layout.data_parallel
    rounds = batch / running
    tpot, ttft, step, offline, saturated, prompts_alone = (
        np.array([run.quantity == name for run in runs])
        for name in ("tpot", "ttft", "step", "batch", "saturated", "prefill")
    )
    share = running / groups / output
    waits = np.maximum(0.0, rounds - 1)
    columns = {f"d_{name}": getattr(decode, name) for name in PARTS}
    columns |= {f"p_{name}": getattr(prefill, name) / together for name in PARTS}
    columns["layers"] = np.full_like(prompt, float(model.layers))
    columns["sequences"] = np.ceil(running / groups)
    columns["steps"] = np.select([tpot | step, ttft, offline, saturated], [1.0, 1.0, rounds * output, 1 / running], 0.0)
    columns["prompts"] = np.select(
        [tpot, ttft, offline | prompts_alone, saturated],
        [share, 1 + share, batch / groups, share / running],
        0.0,
    )
    columns["mixed"] = np.where(tpot | saturated, 1.0, 0.0)
    columns["fronts"] = np.where(ttft | offline | prompts_alone, 1.0, 0.0)
    columns["waiting"] = waits
    columns["wait_steps"] = np.where(ttft, waits * output, 0.0)
    columns["wait_prompts"] = columns["wait_steps"] * share
    # A benchmark begins with all its clients at once: half of the others' prompts come before one's own.
    columns["burst_steps"] = np.zeros_like(prompt)
    columns["burst_prompts"] = np.where(ttft, np.maximum(0.0, batch / groups - 1) / 2, 0.0)
    columns["moved_bytes"] = _bytes(first, running, prompt, output)
    columns["tokens"] = columns["steps"] * running + columns["prompts"] * prompt
    columns["kv_bytes"] = columns["steps"] * running * (prompt + output / 2) * _kv_bytes_per_token(first)
    return columns


def _prompts(kernels: Kernels, prompt: Column, together: Column) -> Parts:
    """`together` prompts in one step; one that is longer than the budget takes several steps over a growing context."""
    chunks = np.maximum(1.0, np.ceil(prompt / BUDGET_TOKENS))
    whole = kernels.prefill(prompt, sequences=together)
    chunk = kernels.prefill(prompt / chunks, cached=(prompt - prompt / chunks) / 2, sequences=together)
    return Parts(
        *(
            getattr(whole if name == "attention" else chunk, name) * (1 if name == "attention" else chunks)
            for name in PARTS
        )
    )


def pool_tokens(run: ServedRun) -> float:
    """Tokens of KV that fit on the replica, by the start-up planner; unbounded where the card's memory is not known."""
    try:
        card = gpu_of(device_of(run).name)
        ranks = run.layout.gpus
        found = plan(
            Deployment(
                model=known_model(run.model),
                engine=_release(run),
                total=Span.exactly(card.memory_bytes),
                gpu=card,
                scheme=_scheme(run.dtype),
                kv_dtype=run.kv_dtype,
                tensor_parallel=ranks,
                attention_data_parallel=run.layout.data_parallel > 1,
                max_model_len=int(run.prompt + run.output),
            )
        )
    except (InputError, ValueError):
        return float("inf")
    tokens = float(found.tokens.best)
    return tokens if tokens > run.prompt else float("inf")


def _release(run: ServedRun) -> Release:
    return engine_release(ENGINES.get(run.engine, "vllm"))


def _scheme(dtype: str) -> Scheme | None:
    return scheme(SCHEMES[dtype]) if dtype in SCHEMES else None


def _kv_bytes_per_token(run: ServedRun) -> float:
    width = {"fp8": 1, "int8": 1}.get(run.kv_dtype, 2)
    return Footprint(known_model(run.model)).kv_bytes_per_token / 2 * width


def _bytes(run: ServedRun, running: Column, prompt: Column, output: Column) -> Mapping[str, Column] | Column:
    """Bytes that one decode step of one GPU reads at least: its part of the weights, and of the KV."""
    bits = {"fp8": 8, "int8": 8, "fp4": 4.5, "int4": 4.5}.get(run.dtype, 16)
    weights = Footprint(known_model(run.model)).parameters * bits / 8
    kv = running * (prompt + output / 2) * _kv_bytes_per_token(run)
    return (weights + kv) / run.layout.gpus
