"""`kvsim trace inspect`: report and statistics, as tables that fit 80 columns, JSON, or a folder with a figure."""

import argparse
from collections.abc import Mapping
from math import floor
from typing import Any

from kvsim.cli.trace.options import population, recording


def inspect_trace(args: argparse.Namespace) -> int:
    """Read the trace, or the clients of a ServeGen data set; write, print."""
    from kvsim.cli.show import print_json
    from kvsim.workload.statistics.inspect import inspect
    from kvsim.workload.statistics.population import inspect_population

    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    named = population(args)
    if named is not None:
        clients = inspect_population(named)[0].record()
        if args.folder is not None:
            from kvsim.reporting.trace import write_population

            write_population(clients, args.folder)
        print_json(clients) if args.json else _print_clients(args, clients)
        return 0
    found = inspect(recording(args))
    record = found.record()
    if args.folder is not None:
        from kvsim.reporting.trace import write_trace

        write_trace(found, args.folder)
    print_json(record) if args.json else _print(args, record)
    return 0


def _print(args: argparse.Namespace, record: Mapping[str, Any]) -> None:
    from kvsim.cli.show import console, print_facts, print_text

    report = record["report"]
    out = console(args)
    print_text(out, _headline(record), "bold")
    out.print()
    rows = {"prompt tokens": record["prompt_tokens"], "output tokens": record["output_tokens"]}
    sessions = record["sessions"]
    if sessions is not None:
        rows["calls a session"] = sessions["calls"]
        if sessions["wait_s"] is not None:
            rows[f"wait from {sessions['wait_from']}, s"] = sessions["wait_s"]
    new = None if sessions is None else sessions["new_prompt_tokens"]
    if new is not None:
        rows["new tokens a turn"] = new
    _print_spreads(args, rows)
    out.print()
    print_facts(args, _arrival_facts(record) | _sharing_facts(record) | _report_facts(report))
    notes = [f"{text} ({count:,})" for text, count in report["notes"].items()]
    for note in notes:
        print_text(out, f"note: {note}")


def _headline(record: Mapping[str, Any]) -> str:
    from kvsim.units import format_duration

    report, arrivals = record["report"], record["arrivals"]
    text = f"{report['rows_kept']:,} requests of {record['trace']}"
    if arrivals is not None and arrivals["rate_per_s"]:
        text += f", {format_duration(arrivals['span_s'])} long, {arrivals['rate_per_s']:.3g} /s"
    if record["sessions"] is not None:
        text += f", in {record['sessions']['sessions']:,} sessions"
    return text + "."


def _print_spreads(args: argparse.Namespace, rows: Mapping[str, Mapping[str, float] | None]) -> None:
    from kvsim.cli.show import Justify, print_rows

    names = ("mean", "p50", "p95", "p99", "max")
    columns: list[tuple[str, Justify]] = [("", "left"), *((name, "right") for name in names)]
    told = [[name, *(number(row[key]) for key in names)] for name, row in rows.items() if row is not None]
    print_rows(args, columns, told)


def _arrival_facts(record: Mapping[str, Any]) -> dict[str, object]:
    arrivals = record["arrivals"]
    if arrivals is None:
        return {"arrivals": "the trace does not tell when every call came"}
    if arrivals["rate_per_s"] is None:
        return {"arrivals": "all at one time"}
    facts: dict[str, object] = {"CV of gaps": f"{arrivals['cv']:.2f}"}
    if arrivals["tied_share"]:
        facts["CV of gaps"] = (
            f"{arrivals['cv']:.2f}; {arrivals['cv_untied']:.2f} without the {100 * arrivals['tied_share']:.1f} % of 0"
        )
    if arrivals["idc"] is not None:
        whole = arrivals["idc_whole_bins"]
        less = "" if whole is None else f"; {whole:.1f} without the last, partly filled bin"
        facts[f"IDC over {arrivals['bin_s']} s"] = f"{arrivals['idc']:.1f} (1: Poisson){less}"
    return facts


def _sharing_facts(record: Mapping[str, Any]) -> dict[str, object]:
    sharing = record["sharing"]
    facts: dict[str, object] = {}
    if sharing["ideal_hit_blocks"] is not None:
        facts["ideal prefix hit"] = (
            f"{100 * sharing['ideal_hit_blocks']:.1f} % of blocks, {100 * sharing['ideal_hit_tokens']:.1f} % of tokens "
            f"({sharing['blocks']:,} blocks, {sharing['distinct_blocks']:,} distinct)"
        )
    if sharing["session_hit_tokens"] is not None:
        facts["told by sessions"] = f"{100 * sharing['session_hit_tokens']:.1f} % of prompt tokens were there before"
    if record["rank_correlation"] is not None:
        facts["prompt and output"] = f"rank correlation {record['rank_correlation']:+.2f}"
    if record["sessions"] is not None:
        facts["sessions of one call"] = f"{100 * record['sessions']['single_share']:.0f} %"
    return facts


def _report_facts(report: Mapping[str, Any]) -> dict[str, object]:
    identity = report["prefix_identity"]
    if report["block_tokens"]:
        scope = {"global": "the whole trace", "session": "one session"}[report["hash_scope"]]
        identity += f": blocks of {report['block_tokens']} tokens, ids good in {scope}"
    elif identity != "absent":
        identity += ": what each turn adds to its session"
    return {
        "format": report["format"],
        "time unit": report["time_unit"],
        "rows": f"{report['rows_read']:,} read, {report['rows_kept']:,} requests kept",
        "dropped": [f"{count:,} x {reason}" for reason, count in report["dropped"].items()],
        "columns not read": ", ".join(report["ignored_columns"]),
        "prefix identity": identity,
    }


def _print_clients(args: argparse.Namespace, record: Mapping[str, Any]) -> None:
    from kvsim.cli.show import console, print_facts, print_text
    from kvsim.units import format_duration, format_rate

    out = console(args)
    text = f"{record['clients']:,} clients of {record['trace']}, {format_duration(record['span_s'])} long"
    print_text(out, f"{text}, {format_rate(record['rate_per_s'])} together.", "bold")
    out.print()
    # Fields that are 0 throughout say nothing.
    _print_spreads(args, {name: field for name, field in record["fields"].items() if field["max"] > 0})
    out.print()
    print_facts(
        args,
        {
            "format": "servegen: clients and laws, no requests",
            "CV of gaps": None if record["cv"] is None else f"{record['cv']:.2f}, the median of windows by rate",
            "busiest client": f"{100 * record['top_share']:.1f} % of requests",
            "left out": f"{record['incomplete']:,} clients that lack one of their two files",
            "prefix identity": "absent",
        },
    )


def number(value: float) -> str:
    """Whole where it is large, halves up; else three digits."""
    if value >= 100 or value == floor(value):
        return f"{floor(value + 0.5):,}"
    return f"{value:.3g}"
