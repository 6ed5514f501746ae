"""A start-up log beside the plan: each number with its difference, and the overheads that it settles."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.capacity.options import gib_digits
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.capacity.logs import StartupLog
    from kvsim.capacity.plan import Plan

GIB_DECIMALS = 3
SETTLED = ("weights_gib", "activation_gib", "non_torch_gib", "cuda_graph_gib")
"""Overheads that a log settles, as the options of the same name take them."""


def read_start(args: argparse.Namespace) -> "StartupLog":
    """Fill in `args` from `--from-log`; an option beats the log. Raises InputError where the file is no log."""
    from kvsim.capacity.logs import read_log
    from kvsim.cli.capacity.building import fill_in

    # A path alone: text would be read as a log itself.
    log = read_log(Path(args.from_log))
    fill_in(args, {**log.settings, "model": log.model})
    if args.engine is None:
        args.engine = log.engine if log.version is None else f"{log.engine}@{log.version}"
    total = log.numbers.get("total_gib")
    if args.gpu is None and log.gpu is not None and total is None:
        args.gpu = log.gpu
    if args.gpu_total_gib is None and total is not None:
        args.gpu_total_gib = f"{total.value:.2f}"
    return log


def comparison(log: "StartupLog", found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each number that both the log and the plan have: logged, planned, difference, and the line it stands on."""
    parts = found["breakdown_gib"]
    planned = {
        "total_gib": parts["total"],
        "weights_gib": parts["weights"],
        "activation_gib": parts["activation"],
        "non_torch_gib": parts["non_torch"],
        "cuda_graph_gib": parts["cuda_graphs"],
        "cuda_graph_estimate_gib": parts["cuda_graphs"],
        "kv_memory_gib": found["kv_memory_gib"],
        "kv_tokens": found["kv_tokens"],
        "kv_blocks": found["kv_blocks"],
        "cpu_blocks": found["cpu_blocks"],
        "max_concurrency": found["max_concurrency"],
    }
    rows = []
    for name, number in numbers(log).items():
        if name in planned:
            rows.append(
                {
                    "name": name,
                    "logged": number["value"],
                    "planned": planned[name],
                    "difference": round(planned[name] - number["value"], GIB_DECIMALS),
                    "line_number": number["line_number"],
                    "text": number["text"],
                }
            )
    return rows


def numbers(log: "StartupLog") -> dict[str, dict[str, Any]]:
    """The numbers that decide, as plain data; non-torch memory from what late releases print together with weights."""
    decisive = dict(log.numbers)
    if "consumed_gib" in decisive and "weights_gib" in decisive and "non_torch_gib" not in decisive:
        decisive["non_torch_gib"] = decisive["consumed_gib"].minus(decisive["weights_gib"])
    return {
        name: {"value": one.value, "low": one.low, "high": one.high, "line_number": one.line_number, "text": one.text}
        for name, one in decisive.items()
    }


def settled(args: argparse.Namespace, log: "StartupLog", made: "Plan") -> dict[str, Any]:
    """The overheads that the log settles, with where they come from: a catalogue entry of its own.

    Late releases print KV memory and no activation peak: it is then what KV, weights and the plan's other overheads
    leave of the engine's share.
    """
    known = {name: float(number["value"]) for name, number in numbers(log).items()}
    source = f"start-up log {Path(args.from_log).name}"
    if "kv_memory_gib" in known and "activation_gib" not in known:
        planned = made.stage
        weights = known.get("weights_gib", planned.weights.gib)
        # What the plan gives to KV and to the activation peak is all that is shared between them.
        room = planned.kv.gib + planned.activation.gib + planned.weights.gib
        room += planned.non_torch.gib - known.get("non_torch_gib", planned.non_torch.gib)
        rest = room - weights - known["kv_memory_gib"]
        if rest >= 0:
            known["activation_gib"] = rest
            source += "; the activation peak is the rest of the engine's share"
        else:
            source += "; the engine had a larger share than planned, so that the activation peak is not settled"
    return {
        "engine": args.engine,
        "model": args.model,
        "gpu": args.gpu or log.gpu or "",
        "tp": args.tensor_parallel_size or 1,
        "pp": args.pipeline_parallel_size or 1,
        "gpu_total_gib": args.gpu_total_gib,
        **{name: f"{known[name]:.2f}" for name in SETTLED if name in known},
        "source": source,
    }


def write_settled(path: str, entry: Mapping[str, Any]) -> None:
    """Write the entry as JSON, whole or not at all."""
    from kvsim.metrics.result import write_whole

    write_whole(Path(path), (json.dumps(entry, indent=2) + "\n").encode())


def read_settled(args: argparse.Namespace) -> None:
    """Take the overheads of a file that `--settled` wrote, where no option gives them."""
    try:
        entry = json.loads(Path(args.overheads).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{args.overheads}: cannot be read ({error}); name a file that --settled wrote") from None
    if not isinstance(entry, dict) or not set(entry) & set(SETTLED):
        raise InputError(f"{args.overheads}: holds none of {', '.join(SETTLED)}; name a file that --settled wrote")
    for name in (*SETTLED, "gpu_total_gib"):
        if entry.get(name) is not None and getattr(args, name) is None:
            try:
                setattr(args, name, gib_digits(str(entry[name])))
            except argparse.ArgumentTypeError as error:
                raise InputError(f"{args.overheads}: {name}: {error}") from None


def print_comparison(args: argparse.Namespace, log: "StartupLog", rows: list[dict[str, Any]]) -> None:
    """The log's numbers beside the plan's."""
    from kvsim.cli.show import Justify, console, print_rows, print_text

    out = console(args)
    out.print()
    print_text(out, f"{args.from_log}: {log.engine} {log.version or ''}, {log.outcome}")
    if log.reason:
        print_text(out, f"{log.reason_class}, line {log.reason_line_number}: {log.reason}")
    columns: list[tuple[str, Justify]] = [("number", "left"), ("logged", "right"), ("planned", "right")]
    columns += [("difference", "right"), ("line", "right")]
    cells = [
        [
            one["name"],
            _number(one["logged"]),
            _number(one["planned"]),
            _number(one["difference"], "+"),
            str(one["line_number"]),
        ]
        for one in rows
    ]
    print_rows(args, columns, cells)


def _number(value: float, sign: str = "") -> str:
    return f"{value:{sign},.0f}" if float(value).is_integer() and abs(value) >= 100 else f"{value:{sign},.2f}"
