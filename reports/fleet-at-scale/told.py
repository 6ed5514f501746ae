"""The README of this report, made of the files that the runs left: no figure in it is written by hand."""

import json
from pathlib import Path
from typing import Any

MIB = 1 << 20
DAY_S = 86_400
MILLION = 1_000_000

TEXT = """\
# A million requests on a fleet

**Question.** What does a fleet of real size cost to simulate, what does its router decide there, and how far does it go
from here?

Written by `rerun.py` from the `summary.json` and `cost.json` of each run: `make fleet-at-scale` runs all of it again
(half an hour of CPU time and more). The scenarios are [fleet-at-scale.yaml](../../scenarios/fleet-at-scale.yaml) and
[fleet-of-1000.yaml](../../scenarios/fleet-of-1000.yaml), both of Llama-3.1-8B on H100s: 32 replicas with vLLM's prefix
cache, whose requests share the prompts of 1,000 applications, at 30 requests/s each; and 1,000 replicas without one, at
20 requests/s each.

{commands}

## What it took

{took}

CPU time is that of all processes, start-up included, and memory the peak of the largest of them. Measured on
{processor} with {cores} cores, Python {python}, at the lowest priority beside
other work that took most of both cores: wall times say little, and CPU times are higher than on an idle machine.{apart}
{short}{flat}

## What it showed

{showed}

Percentiles are of all requests; spreads over replicas go from the least to the most of them. No fleet is saturated:
every request finished, and the mean queue of a replica is {waiting}.
{finding}
## Larger, on paper

{paper}
"""


def readme(folder: Path) -> str:
    """The text, from the files in `folder`; runs that are not there are left out."""
    runs = {
        path.parent.name: (json.loads(path.read_text()), json.loads((path.parent / "summary.json").read_text()))
        for path in sorted(folder.glob("*/cost.json"))
    }
    cost = next(iter(runs.values()))[0]
    waiting = [summary["metrics"]["mean_waiting"] / len(summary["replicas"]) for _, summary in runs.values()]
    return TEXT.format(
        commands="\n".join(["```console", *(f"$ {one['command']}" for one, _ in runs.values()), "```"]),
        took=_table(
            ["run", "replicas", "requests", "CPU time", "wall time", "requests per CPU second", "peak memory"],
            [[name, *_took(*one)] for name, one in runs.items()],
        ),
        processor=cost["processor"],
        cores=cost["cores"],
        python=cost["python"],
        apart=_apart(runs),
        short=_short(runs),
        flat=_flat(folder),
        showed=_table(
            ["", *runs],
            [
                [label, *(tell(summary) for _, summary in runs.values())]
                for label, tell in (
                    ("prompt tokens found cached", _found),
                    ("TTFT p50 / p99, ms", lambda s: _pair(s["metrics"]["ttft_s"], "p50", "p99")),
                    ("TPOT p50 / p99, ms", lambda s: _pair(s["metrics"]["tpot_s"], "p50", "p99")),
                    ("meet every goal of `slo:`", _good),
                    ("simulated time, s", lambda s: f"{s['metrics']['simulated_s']:,.0f}"),
                    ("served by a replica", lambda s: _spread(s, "finished", 1, 0)),
                    ("mean running on a replica", lambda s: _spread(s, "mean_running", 1, 1)),
                    ("mean TTFT of a replica, ms", lambda s: _spread(s, "ttft_mean_s", 1000, 1)),
                )
            ],
        ),
        waiting=f"{min(waiting):.2g} to {max(waiting):.2g} requests",
        finding=_finding(runs),
        paper="\n".join(_paper(runs, folder)),
    )


def _cpu_s(cost: dict[str, Any]) -> float:
    return float(sum(process["cpu_s"] for process in cost["processes"].values()))


def _took(cost: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    cpu_s = _cpu_s(cost)
    most = max(process["peak_memory_bytes"] for process in cost["processes"].values())
    return [
        f"{len(summary['replicas']):,}",
        f"{cost['requests']:,}",
        f"{cpu_s / 60:.1f} min",
        f"{cost['wall_s'] / 60:.1f} min",
        f"{cost['requests'] / cpu_s:,.0f}",
        f"{most / MIB:,.0f} MiB",
    ]


def _apart(runs: dict[str, Any]) -> str:
    found = runs.get("round-robin-1000")
    if found is None:
        return ""
    parts = ", ".join(f"{name} {one['cpu_s'] / 60:.1f} min" for name, one in found[0]["processes"].items())
    return f"\nOf the fleet of 1,000: {parts}."


def _short(runs: dict[str, Any]) -> str:
    """Which runs are shorter than the scenario says, and what else is to be known of any."""
    fewer = {name: cost["requests"] for name, (cost, _) in runs.items() if cost["requests"] < MILLION}
    told = ", ".join(f"{name} on {requests:,} requests" for name, requests in fewer.items())
    return (
        f"\n**Not run in full**: {told}; what is said of it per million is that many times what was measured.\n"
        * bool(fewer)
    ) + "".join(f"\n**{name}**: {cost['note']}\n" for name, (cost, _) in runs.items() if "note" in cost)


def _flat(folder: Path) -> str:
    """What a quarter of the requests took, where it was measured: memory does not follow their number."""
    whole, quarter = folder / "prefix-aware" / "cost.json", folder / "prefix-aware" / "cost-250000.json"
    if not quarter.exists():
        return ""
    most, least = (json.loads(path.read_text())["processes"]["run"]["peak_memory_bytes"] for path in (whole, quarter))
    return (
        f"\n**Memory** is that of full pools and of what their caches are recorded by: under prefix-aware 250,000 "
        f"requests took {least / MIB:,.0f} MiB, and a million {most / MIB:,.0f}.\n"
    )


def _pair(spread: dict[str, float], low: str, high: str) -> str:
    return f"{1000 * spread[low]:.1f} / {1000 * spread[high]:.1f}"


def _found(summary: dict[str, Any]) -> str:
    rate = summary["metrics"]["hit_rate"]
    return "-" if rate is None else f"{100 * rate:.1f} %"


def _good(summary: dict[str, Any]) -> str:
    metrics = summary["metrics"]
    return f"{100 * metrics['goodput_per_s'] / metrics['requests_per_s']:.2f} %"


def _spread(summary: dict[str, Any], column: str, times: float, digits: int) -> str:
    values = [times * row[column] for row in summary["replicas"]]
    return f"{min(values):,.{digits}f} to {max(values):,.{digits}f}"


def _finding(runs: dict[str, Any]) -> str:
    if not {"least-kv", "prefix-aware"} <= set(runs):
        return ""
    by_load, by_cache = (runs[name][1]["metrics"] for name in ("least-kv", "prefix-aware"))
    fewer = 1 - (1 - by_cache["hit_rate"]) / (1 - by_load["hit_rate"])
    return (
        f"\nFollowing the caches, {100 * fewer:.0f} % fewer prompt tokens are computed than by least KV, and the "
        f"median TTFT is {by_load['ttft_s']['p50'] / by_cache['ttft_s']['p50']:.1f} times shorter.\n"
    )


def _paper(runs: dict[str, Any], folder: Path) -> list[str]:
    lines = []
    for name in ("least-kv", "prefix-aware"):
        if name in runs:
            cost, summary = runs[name]
            minutes, rate = _cpu_s(cost) / cost["requests"] * 1e6 / 60, _rate(summary)
            lines.append(
                f"- **{name}** looks at all replicas, so that there is one clock and one core: {minutes:.1f} CPU "
                f"minutes per million requests, however many cores there are. A day of these "
                f"{len(summary['replicas'])} replicas, {DAY_S * rate / 1e6:.0f} million requests at {rate:,.0f}/s, "
                f"would take {DAY_S * rate / 1e6 * minutes / 60:.0f} hours: there it stops. Shorter stretches of the "
                "day, each with a warm-up, are independent runs."
            )
    moved = folder / "moved.json"
    if "round-robin-1000" in runs and moved.exists():
        lines += _pieces(runs["round-robin-1000"][1], json.loads(moved.read_text()))
    return lines


def _pieces(summary: dict[str, Any], moved: dict[str, Any]) -> list[str]:
    one, few, tenth = moved["pieces"]
    requests, parts, replicas, rate = few["requests"], moved["parts"], len(summary["replicas"]), _rate(summary)
    apart = few["replicas"] - one["replicas"]
    each_s = (few["cpu_s"] - one["cpu_s"]) / apart
    make_s, serve_s = one["cpu_s"] - one["replicas"] * each_s, each_s * replicas
    whole_s, back_bytes = make_s * parts + serve_s, few["back_bytes"] / few["replicas"] * replicas
    served = (few["requests"] - tenth["requests"]) / replicas * few["replicas"]
    a_request = (few["back_bytes"] - tenth["back_bytes"]) / served
    day = DAY_S * rate
    return [
        f"- **A stateless router** needs no common clock: replicas go out in {parts} pieces. Each makes all "
        f"{requests:,} requests, which takes {make_s:.0f} CPU s however few replicas it serves; the "
        f"{requests / replicas:,.0f} of one replica take {each_s:.2f} s more (measured on two pieces by themselves, of "
        f"{one['replicas']} and of {few['replicas']} replicas). Over all pieces, making requests is "
        f"{100 * make_s * parts / whole_s:.0f} % of the work.",
        f"- **Bytes moved**: a piece is {one['sent_bytes'] / 1024:.1f} KiB, the answers of all together "
        f"{back_bytes / MIB:.0f} MiB: {a_request:.0f} bytes a request (what percentiles are made of), the rest "
        "histograms and sums of each replica. They stay with whoever asked until the summary is made.",
        f"- **More cores**: one for each piece would end it after {make_s + serve_s / parts:.0f} CPU s instead of "
        f"{whole_s:.0f}; beyond {parts} cores nothing is gained. With more pieces, half of the work would be making "
        f"requests from {serve_s / make_s:.0f} pieces on.",
        f"- **A day of it**, {day / 1e6:,.0f} million requests at {rate:,.0f}/s, would be "
        f"{day / requests * whole_s / 3600:,.0f} CPU hours and {day * a_request / (1 << 30):,.0f} GiB of answers, more "
        "than whoever asks for them holds: there it stops. As above, shorter stretches are independent runs.",
    ]


def _rate(summary: dict[str, Any]) -> float:
    """Requests that arrive in a second."""
    return float(summary["metrics"]["arrived"] / summary["metrics"]["window_s"][1])


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
