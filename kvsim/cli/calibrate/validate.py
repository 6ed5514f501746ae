"""`kvsim calibrate validate`: how far a calibration is off on the held-out operations of a run."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvsim.cli.calibrate.accept import add_accept
from kvsim.cli.options import add_output_options, one_thread

GATE_MISSED = 1
"""Exit code where a gate is not met."""
FEWEST_LISTED = 3
"""Families with fewer held-out points are a line of the table, and whole in `--json`."""


def add(actions: Any) -> None:
    """Say what the action takes."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "validate",
        help="how far a calibration is off on operations that it was not fitted to",
        description="Predict the held-out operations of a run: other models' shapes, sizes in between, unseen batches "
        "and contexts, and whole steps as the sum of their kernels, beside two baselines. Exit code 1: a gate is not "
        "met (mean |error| of steps and of each family at most 10 %, p90 of steps at most 20 %).",
        allow_abbrev=False,
    )
    parser.add_argument("calibration", metavar="CALIBRATION", help="a file that `kvsim calibrate fit` wrote")
    parser.add_argument("results", metavar="RESULTS", help="results of the same GPU, of `kvsim calibrate run`")
    parser.add_argument("--gpu", metavar="NAME", help="which GPU of `kvsim gpus` it is")
    add_accept(parser)
    add_output_options(parser, "print the scores as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read both, score, print; say whether every gate is met."""
    one_thread()
    from kvsim.cli.show import print_json
    from kvsim.microbench.fit.fit import device_of
    from kvsim.microbench.fit.trust import refuse
    from kvsim.microbench.results import read_results
    from kvsim.microbench.validation.validate import validate
    from kvsim.timing.fitting.calibration import read

    calibration = read(Path(args.calibration))
    results = read_results(Path(args.results))
    refuse(results, {*args.accept, *calibration.about.get("accepted", ())})
    found = validate(calibration, results, device_of(results, args.gpu))
    if args.json:
        print_json(found)
    else:
        _print(args, found)
    return 0 if all(gate["met"] for gate in found["gates"]) else GATE_MISSED


def _print(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text

    out = console(args)
    print_text(out, f"Held-out operations on {found['gpu']}, {found['provenance']}", "bold")
    columns: list[tuple[str, Justify]] = [("|error| %", "left"), ("n", "right")]
    columns += [(name, "right") for name in ("mean", "median", "p90", "worst", "bias", "within")]
    columns += [("sheet\nmean", "right"), ("line\nmean", "right")]
    print_rows(args, columns, [_row(one) for one in found["families"]])
    print_text(
        out,
        "within: % of predictions between the point's own p10 and p90; sheet: a roofline at the data sheet's rates; "
        "line: a straight line in tokens and KV bytes",
        "dim",
    )
    for one in found["families"]:
        if one["n"] < FEWEST_LISTED:
            continue
        out.print()
        print_text(out, f"Worst of {one['bench']}", "bold")
        for point in one["worst"]:
            print_text(
                out,
                f"{100 * point['error']:+.1f} %  {point['measured_s']:.4g} s measured  {point['point']} "
                f"(line {point['line']})",
            )
    out.print()
    _print_gates(out, found["gates"])
    for name, missing in found["missing_us_per_layer"].items():
        print_text(out, f"steps ({name}) take {missing:.2f} us a layer beside their kernels; no score uses this", "dim")
    if found["not_held_out"]:
        print_text(out, f"nothing held out: {', '.join(found['not_held_out'])}", "dim")


def _print_gates(out: Any, gates: Sequence[Mapping[str, Any]]) -> None:
    """Gates of steps one by one, and each that is not met; the others are a number."""
    from kvsim.cli.show import print_text

    told = [gate for gate in gates if not gate["met"] or gate["bench"].startswith("step")]
    for gate in sorted(told, key=lambda gate: gate["met"]):
        print_text(out, gate_line(gate))
    others = [gate for gate in gates if gate not in told]
    if others:
        most = 100 * max(gate["most"] for gate in others)
        print_text(out, f"met: mean |error| of {len(others)} kinds of single operations, each at most {most:.0f} %")


def gate_line(gate: Mapping[str, Any]) -> str:
    """One gate and what was reached, as a line."""
    if gate["reached"] is None:
        return f"NOT met: {gate['bench']}: none was measured"
    word = "met" if gate["met"] else "NOT met"
    reached, most = 100 * gate["reached"], 100 * gate["most"]
    return f"{word}: {gate['bench']}: {gate['gate']} |error| {reached:.1f} % (at most {most:.0f})"


def _row(one: Mapping[str, Any]) -> list[str]:
    names = [f"{name}_abs_error" for name in ("mean", "median", "p90", "worst")]
    shares = [one[name] for name in (*names, "within_spread", "baseline_datasheet_mean", "baseline_line_mean")]
    cells = ["-" if share is None else f"{100 * share:.1f}" for share in shares]
    return [one["bench"], f"{one['n']:,}", *cells[:4], f"{100 * one['bias']:+.1f}", *cells[4:]]
