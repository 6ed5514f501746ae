"""One row: what was logged beside what the planner says, with the error of each number and whether it is inside."""

from dataclasses import replace
from typing import Any

from kvsim.capacity.checking.rows import Row, deployment, plain_model, shape_of
from kvsim.capacity.deployment import Deployment, Given
from kvsim.capacity.plan import Plan
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.errors import KvsimError
from kvsim.units import GIB

Record = dict[str, Any]

NUMBERS = ("kv_blocks", "kv_tokens", "max_concurrency")


def given_record(row: Row) -> Record:
    """The row with its logged overheads, KV memory or blocks given; None where it logs none of them."""
    given = _given(row)
    if given is None:
        return _record(row, None, "the row logs neither KV memory nor overheads nor blocks")
    shape = shape_of(row)
    if shape is None and (given.num_gpu_blocks is None or row.number("max_model_len") is None):
        record = _record(row, None, row.why_unknown)
        return _needed(row, record)
    try:
        made = _plan(row, deployment(row, given, shape or plain_model(1, 1, 64)))
    except KvsimError as error:
        return _record(row, None, str(error))
    record = _needed(row, _record(row, made, "given " + _given_word(given)))
    return _from_overheads(row, given, made, record)


def default_record(row: Row) -> Record:
    """The row from its model, GPU and flags alone, without the logs of its own model."""
    if row.known is None:
        return _record(row, None, row.why_unknown)
    try:
        # Where nobody published the weights, the overhead can still be told.
        known = row.known.weights_known
        given = Given() if known else Given(weights=row.gib("weights_gib_per_gpu") or Span.exactly(0))
        made = _plan(row, deployment(row, given, row.known), without=row.known.name)
    except KvsimError as error:
        return _record(row, None, str(error))
    record = _record(row, made, "estimated" if known else "estimated; weights as logged, nobody published them")
    if not known:
        record["predicted"]["weights_gib"] = None
        record["error"].pop("weights_gib", None)
    return record


def _from_overheads(row: Row, given: Given, made: Plan, record: Record) -> Record:
    """KV memory from the logged overheads as well, where both are printed."""
    kv = row.kv_memory
    if (
        kv is None
        or not kv.best
        or row.number("util") is None
        or not all((given.activation, given.non_torch, made.deployment.total.best))
    ):
        return record
    again = plan(replace(made.deployment, given=replace(given, kv_memory=None))).stage.kv
    name = "kv_memory_from_overheads"
    record["predicted"][f"{name}_gib"] = again.gib
    record["error"][name] = round(again.best / kv.best - 1, 5)
    record["inside"][name] = again.low <= kv.high and kv.low <= again.high
    return record


def _plan(row: Row, asked: Deployment, without: str = "") -> Plan:
    """The plan; where a start that ran does not say its max_model_len, it cannot have been more than the pool holds."""
    made = plan(asked, without=without)
    if asked.max_model_len is None and row.refused is None and made.verdict.reason_class == "max_model_len_above_pool":
        longest = made.layout.longest(int(made.blocks.best), asked.step_tokens, asked.longest)
        return plan(replace(asked, max_model_len=max(1, longest)), without=without)
    return made


def _given(row: Row) -> Given | None:
    weights, non_torch = row.gib("weights_gib_per_gpu"), row.gib("non_torch_gib")
    activation, graphs = row.gib("activation_peak_gib"), row.gib("cuda_graph_gib")
    if graphs is not None and graphs.best < 0:
        graphs = Span.exactly(0)
    known = Given(weights=weights or Span.exactly(0), non_torch=non_torch, activation=activation, cuda_graphs=graphs)
    kv, blocks = row.kv_memory, row.number("kv_blocks")
    if kv is not None:
        return replace(known, kv_memory=kv)
    if weights is not None and non_torch is not None and activation is not None and row.number("util") is not None:
        return known
    if blocks is not None:
        return replace(known, num_gpu_blocks=int(blocks))
    return None


def _given_word(given: Given) -> str:
    if given.kv_memory is not None:
        return "KV memory"
    return "blocks" if given.num_gpu_blocks is not None else "overheads"


def _record(row: Row, made: Plan | None, why: str) -> Record:
    logged = {name: row.number(name) for name in NUMBERS}
    kv = row.kv_memory
    logged |= {"gpu_total_gib": row.number("gpu_total_gib"), "weights_gib": row.number("weights_gib_per_gpu")}
    logged["kv_memory_gib"] = None if kv is None else kv.gib
    logged["overhead_gib"] = _logged_overhead(row)
    record: Record = {
        "id": row.id,
        "engine": f"{row.text('engine')} {row.text('engine_version')}".strip(),
        "model": row.text("model"),
        "gpu": row.text("gpu"),
        "tp": int(row.number("tp") or 1),
        "pp": int(row.number("pp") or 1),
        "consistent": row.text("consistent") or "yes",
        "logged": logged | {"outcome": row.text("outcome"), "reason_class": row.refused},
        "predicted": None,
        "error": {},
        "inside": {},
        "why": why,
        "source": row.text("source_url"),
    }
    return record if made is None else record | _predicted(row, made, logged)


def _predicted(row: Row, made: Plan, logged: dict[str, float | None]) -> Record:
    spans = {"kv_blocks": made.blocks, "kv_tokens": made.tokens, "max_concurrency": made.concurrency}
    predicted: Record = {}
    for name, span in spans.items():
        predicted[name] = round(span.best, 2) if name == "max_concurrency" else int(span.best)
        predicted[f"{name}_interval"] = [span.low, span.high]
    stage = made.stage
    overhead = stage.activation + stage.non_torch
    if made.deployment.engine.rules["policy"] == "vllm-graphs":
        overhead = overhead + stage.cuda_graphs
    predicted |= {
        "weights_gib": stage.weights.gib,
        "kv_memory_gib": stage.kv.gib,
        "kv_memory_gib_interval": [round(stage.kv.low / GIB, 3), round(stage.kv.high / GIB, 3)],
        "overhead_gib": overhead.gib,
        "activation_gib": stage.activation.gib,
        "non_torch_gib": stage.non_torch.gib,
        "cuda_graphs_gib": stage.cuda_graphs.gib,
        "verdict": made.verdict.word,
        "reason_class": made.verdict.reason_class,
        "reason": made.verdict.reason,
        "binding_rank": stage.name,
    }
    error, inside = {}, {}
    for name in (*NUMBERS, "weights_gib"):
        value = logged[name]
        if value:
            error[name] = round(predicted[name] / value - 1, 5)
        if value is not None and name in spans:
            inside[name] = _inside(value, spans[name], 0.005 if name == "max_concurrency" else 0)
    value, kv = logged["overhead_gib"], logged["kv_memory_gib"]
    if value is not None:
        error["overhead_gib"] = round(predicted["overhead_gib"] - value, 3)
    if kv:
        error["kv_memory"] = round(predicted["kv_memory_gib"] / kv - 1, 5)
        inside["kv_memory"] = _inside(kv * GIB, stage.kv, 0.005 * GIB)
    return {"predicted": predicted, "error": error, "inside": inside}


def _inside(value: float, span: Span, half: float) -> bool:
    return span.low - half <= value <= span.high + half


def _logged_overhead(row: Row) -> float | None:
    """Everything but weights and KV, in GiB: what the engine's share holds beside them."""
    total, share, weights = (row.number(name) for name in ("gpu_total_gib", "util", "weights_gib_per_gpu"))
    kv = row.kv_memory
    if total is None or share is None or weights is None or kv is None or not kv.best:
        return None
    return round(total * share - weights - kv.best / GIB, 3)


def _needed(row: Row, record: Record) -> Record:
    """A row that prints what one request needs is judged by that."""
    needed, kv = row.number("needed_kv_gib"), row.kv_memory
    if needed is None or kv is None or record["predicted"] is not None:
        return record
    refused = needed > kv.best / GIB
    said = {
        "verdict": "refused" if refused else "fits",
        "reason_class": "max_model_len_above_pool" if refused else None,
    }
    return record | {"predicted": said, "why": "given KV memory and the need of one request"}
