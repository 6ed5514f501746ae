"""The tables of a page: results side by side, requests and tenants, intervals, settings."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kvsim.metrics.result import Result
from kvsim.reporting.comparison import comparison_table
from kvsim.reporting.inputs.sheet import Body, Cell, Sheet, cell
from kvsim.reporting.study.table import basis, rows
from kvsim.reporting.tenants import tenant_table
from kvsim.step import ENDS
from kvsim.units import GIB

if TYPE_CHECKING:
    from kvsim.study.replication.study import Study


def comparison_sheet(results: Sequence[Result]) -> Sheet:
    """Every metric of the results, one column for each of them; two numbers in a cell as its heading says."""
    groups = comparison_table(results)
    bodies = []
    for group in groups:
        lines = []
        for row in group.rows:
            label = f"{row.label}, {row.unit}" if row.unit else row.label
            cells = [Cell(row.text(place), row.values[place][0]) for place in range(len(results))]
            lines.append([Cell(label), *cells])
        bodies.append(Body(group.heading, lines))
    return Sheet(title="All numbers", columns=["metric", *(result.name for result in results)], bodies=bodies)


GLANCE = (
    ("KV memory, mean / peak", "used"),
    ("KV memory, mean / peak", "waste"),
    ("Requests, mean / max", "running"),
    ("Requests, mean / max", "waiting, mean"),
    ("Requests, mean / max", "finished"),
    ("Requests, mean / max", "rejected"),
    ("Prefixes found cached, p50 / p99", "hit rate"),
    ("Pressure", "preemptions"),
    ("Latency, p50 / p99", "TTFT"),
    ("Latency, p50 / p99", "TPOT"),
    ("Rates", "output tokens"),
    ("Rates", "goodput"),
)
"""What one looks at first, by heading and label of the table of all numbers; what is not there is left out."""


def glance_sheet(results: Sequence[Result], of: str = "") -> Sheet:
    """The results as rows, and what one looks at first as columns, so that they can be put in order by each.

    `of` says of which runs they are, where there are more.
    """
    there = {(group.heading, row.label): row for group in comparison_table(results) for row in group.rows}
    picked = [there[name] for name in GLANCE if name in there]
    picked = [row for row in picked if any(number is not None for pair in row.values for number in pair)]
    heads = [f"{row.label.strip()}, {row.unit}" if row.unit else row.label for row in picked]
    lines = [
        [Cell(result.name), *(Cell(row.text(place), row.values[place][0]) for row in picked)]
        for place, result in enumerate(results)
    ]
    note = "Two numbers: mean / peak of shares, mean / most of requests, p50 / p99 of latencies; sorted by the first."
    note = f"{of[0].upper()}{of[1:]}. {note}" if of else note
    return Sheet(title="At a glance", columns=["variant", *heads], bodies=[Body("", lines)], note=note)


def requests_sheet(results: Sequence[Result]) -> Sheet | None:
    """Who came, how long they were and how they ended, a row for each result; None where no table was kept."""
    kept = [result for result in results if len(result.tables.get("requests", {}).get("id", ()))]
    if not kept:
        return None
    ends = [end for end in ENDS if end in ("finished", "rejected") or any(r.metrics[end] for r in kept)]
    heads = ["variant", "arrived", *ends, "prompt tokens, mean", "prompt tokens, max"]
    heads += ["output tokens, mean", "output tokens, max", "preempted, %", "E2E p50, s", "E2E p99, s"]
    lines = []
    for result in kept:
        table = result.tables["requests"]
        prompts, outputs = list(table["prompt_tokens"]), list(table["generated_tokens"])
        hit = sum(1 for times in table["preemptions"] if times) / len(prompts) * 100
        whole = result.metrics["e2e_s"] or {}
        lines.append(
            [
                Cell(result.name),
                *(cell(result.metrics[name]) for name in ("arrived", *ends)),
                cell(sum(prompts) / len(prompts), 1),
                cell(max(prompts)),
                cell(sum(outputs) / len(outputs), 1),
                cell(max(outputs)),
                cell(hit, 1),
                cell(whole.get("p50")),
                cell(whole.get("p99")),
            ]
        )
    note = "Lengths are of all that arrived; outputs are the tokens that were really generated."
    return Sheet(title="Requests", columns=heads, bodies=[Body("", lines)], note=note)


def tenants_sheet(results: Sequence[Result]) -> Sheet | None:
    """What each tenant got, a row for each; None where no result has more than one."""
    told = [(result.name, table) for result in results if (table := tenant_table(result)) is not None]
    if not told:
        return None
    by_label = [{row.label: row for group in table.groups for row in group.rows} for _, table in told]
    labels = {
        row.label: f"{row.label}, {row.unit}" if row.unit else row.label for own in by_label for row in own.values()
    }
    bodies = []
    for (name, table), own in zip(told, by_label, strict=True):
        there = [own.get(label) for label in labels]
        lines = [
            [Cell(tenant), *(Cell(row.text(at), row.values[at][0]) if row else Cell("") for row in there)]
            for at, tenant in enumerate(table.names)
        ]
        bodies.append(Body(name, lines))
    return Sheet(title="By tenant", columns=["tenant", *labels.values()], bodies=bodies, note=told[0][1].note)


def intervals_sheet(study: "Study") -> Sheet:
    """What each variant has under each metric, with its interval, and how far it is from the baseline."""
    bodies = []
    for metric, each in rows(study):
        lines = []
        for row in each:
            estimate = study.variant(row.variant).estimates.get(metric.key)
            number = None if estimate is None else estimate.interval.estimate
            lines.append([Cell(row.variant), Cell(row.value, number), *map(Cell, (row.difference, row.verdict))])
        bodies.append(Body(f"{metric.label}, {metric.unit}" if metric.unit else metric.label, lines))
    heads = ["variant", "estimate", f"difference to {study.baseline}", "verdict"]
    said = basis(study)
    return Sheet(title="How sure", columns=heads, bodies=bodies, note=f"{said[0].upper()}{said[1:]}.")


def settings_sheet(results: Sequence[Result]) -> Sheet:
    """Every setting with its value and where it came from; those in which the results differ stand first."""
    keys = list(dict.fromkeys(key for result in results for key in result.scenario_resolved))
    differ, alike = [], []
    for key in keys:
        found = [result.scenario_resolved.get(key, {}) for result in results]
        if len({json.dumps(one.get("value"), sort_keys=True) for one in found}) > 1:
            for result, one in zip(results, found, strict=True):
                differ.append([Cell(key), Cell(_value(one)), Cell(f"{result.name}: {one.get('source', '-')}")])
        else:
            alike.append([Cell(key), Cell(_value(found[0])), Cell(_source(found))])
    bodies = [Body("What differs", differ)] if differ else []
    return Sheet(
        title="Settings",
        columns=["key", "value", "from"],
        bodies=[*bodies, Body("The same for all" if differ else "", alike)],
    )


def _value(setting: Mapping[str, Any]) -> str:
    if "value" not in setting:
        return "-"
    value = setting["value"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _source(found: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(str(one.get("source", "-")) for one in found))


def device_lines(results: Sequence[Result]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """How the card of each result is divided at its largest step, in GiB, for those that know."""
    for result in results:
        device = result.metrics.get("device_bytes")
        if device:
            names = ("weights", "pool", "workspace", "other", "left")
            yield result.name, [(name, device[name] / GIB) for name in names]
