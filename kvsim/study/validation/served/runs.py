"""One measured run of a served model: what ran, where, and the one time that is compared."""

import math
import re
from dataclasses import dataclass, replace
from functools import cache

from kvsim.capacity.weights.quantization import of_checkpoint
from kvsim.catalog.models import Model, model
from kvsim.errors import InputError
from kvsim.timing.families import Device, device
from kvsim.timing.steps.shapes import Layout

NODE_GPUS = 8
"""GPUs of a node; no engine cuts the heads of a model over more."""

_REMARK = re.compile(r"[-_ ](nvfp4|fp8|fp4|bf16|fp16|instruct)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRun:
    """A row of a served table.

    `seconds` is what was measured: of one output token (`tpot`), of the first (`ttft`), of one decode step (`step`), of
    the prefill of the batch (`prefill`), of the whole batch (`batch`), or of one output token of the whole replica
    (`saturated`). `batch` requests are in flight; `closed` says that a finished one is replaced at once. `None`: as
    many as fit. `engine` names the overheads, `version` the release.
    """

    source: str
    gpu: str
    model: str
    layout: Layout
    dtype: str
    kv_dtype: str
    engine: str
    version: str
    quantity: str
    seconds: float
    prompt: float
    output: float
    batch: float | None
    closed: bool = False

    @property
    def family(self) -> str:
        """The name under which the row is scored."""
        return {"batch": "offline_throughput", "saturated": "offline_throughput"}.get(self.quantity, self.quantity)


@cache
def known_model(name: str) -> Model:
    """The model that a source calls so, whatever it says of the checkpoint's numbers. Raises InputError."""
    bare = of_checkpoint(name)[0] or name
    while True:
        try:
            return model(bare)
        except InputError:
            shorter = _REMARK.sub("", bare)
            if shorter == bare:
                raise
            bare = shorter


def why_not(run: ServedRun) -> str | None:
    """Why a row cannot be predicted: its shape or its data sheet is missing. None where it can."""
    try:
        device(run.gpu)
        found = known_model(run.model)
    except InputError as error:
        text = str(error)
        return text.split(":")[0] if text.startswith(("unknown model", "GPU")) else text
    if not found.weights_known:
        return f"weights of {run.model} are not known"
    return None


def device_of(run: ServedRun) -> Device:
    """The device a run was on."""
    return device(run.gpu)


@cache
def architecture(name: str) -> str:
    """What tells one architecture from another: models of one shape are held out together, whatever they are called."""
    found = known_model(name)
    sizes = (found.layers, found.hidden, found.heads, found.full_kv_heads, found.intermediate, found.experts)
    return "/".join("-" if size is None else str(size) for size in sizes)


def layout(tensor: float, attention: float, expert_tensor: float, expert_parallel: float, *, moe: bool) -> Layout:
    """How the GPUs of a row share the model.

    Three habits of the sources are undone. Where the product of the stated sizes is the square of what each states,
    the same GPUs were counted twice. More than a node under one tensor-parallel size is attention data parallelism:
    each GPU has its own sequences. Stated expert sizes that do not multiply to the GPUs are made to.
    """
    tp, dp, et, ep = (
        max(1, int(size)) if size == size else 1 for size in (tensor, attention, expert_tensor, expert_parallel)
    )
    gpus = tp * dp
    root = math.isqrt(gpus)
    twice = root > 1 and root * root == gpus
    if twice and ((et == root and ep == root) or (tp == root and dp == root and ep == gpus)):
        tp, dp = (root, 1) if tp == gpus else (1, root)
        et, ep, gpus = 1, root, root
    if gpus > NODE_GPUS and dp == 1:
        tp, dp, et, ep = 1, gpus, 1, gpus
    if not moe:
        et = ep = 1
    elif et * ep != gpus:
        et, ep = (gpus, 1) if ep == 1 else (max(1, gpus // ep), ep)
    return Layout(tensor_parallel=tp, data_parallel=dp, expert_tensor=et, expert_parallel=ep)


def whole(run: ServedRun, batch: float) -> ServedRun:
    """The same run with another number of requests in flight."""
    return replace(run, batch=batch)
