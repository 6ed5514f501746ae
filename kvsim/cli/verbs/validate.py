"""`kvsim validate`: how far the cost model is off on measurements that it was not fitted to."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvsim.cli.options import add_output_options, one_thread

DATA_VARIABLE = "KVSIM_DATA"
RECORDED = {"TTFT": "ttft_s.mean", "TPOT": "tpot_s.mean", "E2E": "e2e_s.mean"}
"""What a line says of a recorded run."""


BASELINES = (
    "bytes, line: median |error| of the two baselines on the same rows: bytes over the data sheet's bandwidth, and one "
    "straight line in tokens and KV bytes."
)


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "validate",
        help="how far step times and served runs are off on held-out measurements",
        description="Predict measured kernels and served runs from fits that saw none of their shapes, models, GPUs or "
        "releases, and print the errors beside two baselines.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="a folder with any of the known tables (kernel_gemm.csv, e2e_serving.csv, ...); default: what "
        f"{DATA_VARIABLE} names, else the small set that comes with kvsim",
    )
    parser.add_argument(
        "--calibration", metavar="FILE", help="a calibration that `kvsim calibrate fit` wrote, over the one of kvsim"
    )
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write the report and its figures there")
    parser.add_argument(
        "--expected",
        metavar="FILE",
        help="write the errors of served runs by class there, which `run`, `compare` and figures state (needs served "
        "tables in DIR)",
    )
    parser.add_argument(
        "--envelope",
        metavar="FILE",
        help="write the page on the validity envelope there: ranges, errors and sources of all that kvsim comes with; "
        "scores nothing",
    )
    add_output_options(parser, "print the scores as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Score, write, print."""
    import os

    if args.envelope is not None:
        return _write_envelope(args)
    one_thread()
    from kvsim.cli.show import print_json
    from kvsim.study.validation.validate import sample_folder, validate

    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    if args.expected is not None:
        from kvsim.reporting.run_folder import check_file

        check_file(args.expected, "--expected")
    own = None
    if args.calibration is not None:
        from kvsim.timing.fitting.calibration import read

        own = read(Path(args.calibration))
    named = args.data or os.environ.get(DATA_VARIABLE)
    folder = Path(named) if named else sample_folder()
    found = validate(folder, own)
    if args.folder is not None:
        from kvsim.reporting.validation.report import write_validation
        from kvsim.study.validation.recorded import recorded_runs

        write_validation(found, args.folder, recorded_runs(folder)[0])
    if args.expected is not None:
        _write_expected(found, args.expected)
    if args.json:
        print_json(found)
    else:
        _print(args, found)
    return 0


def _write_envelope(args: argparse.Namespace) -> int:
    """The page that needs no measurements: what is fitted, and what the fits were found to be worth."""
    from kvsim.errors import InputError
    from kvsim.metrics.result import write_whole
    from kvsim.reporting.run_folder import check_file
    from kvsim.reporting.validity.page import validity_page

    for option, given in (("--data", args.data), ("--calibration", args.calibration), ("-o", args.folder),
                          ("--expected", args.expected), ("--json", args.json or None)):  # fmt: skip
        if given is not None:
            raise InputError(f"--envelope: the page is of what comes with kvsim; leave {option} out")
    check_file(args.envelope, "--envelope")
    write_whole(Path(args.envelope), validity_page().encode())
    print(f"written to {args.envelope}")
    return 0


def _write_expected(found: Mapping[str, Any], file: str) -> None:
    """The data file that answers look their error up in, with where it comes from."""
    from kvsim.errors import InputError
    from kvsim.metrics.result import to_json, write_whole

    if not found["expected_errors"]:
        raise InputError(
            "--expected: no served run was scored; give a folder with e2e_serving.csv or another such table"
        )
    about = {"written_by": "kvsim validate --expected", "provenance": found["provenance"]}
    write_whole(Path(file), to_json(found["expected_errors"] | about).encode())


def _print(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text

    out = console(args)
    columns: list[tuple[str, Justify]] = [("source\n  family", "left"), ("n", "right")]
    columns += [(f"{name}\n|error| %", "right") for name in ("median", "p90")]
    columns += [("bias\n%", "right"), ("bytes\n%", "right"), ("line\n%", "right")]
    titles = {
        "unseen_model": "Unseen shapes and models, on GPUs that were fitted",
        "unseen_gpu": "Unseen GPUs: data sheet and the other GPUs' efficiencies",
        "unseen_release": "Unseen engine releases",
    }
    for part, title in titles.items():
        rows = found["summary"][part]
        if not rows:
            continue
        print_text(out, title, "bold")
        print_rows(args, columns, [_row(one) for one in rows])
        out.print()
    print_text(out, BASELINES, "dim")
    for goal in found["summary"]["targets"]:
        print_text(out, goal_line(goal))
    for run in found["recorded_runs"]:
        off = [f"{name} {100 * run['rows'][key]['error']:+.1f} %" for name, key in RECORDED.items()]
        print_text(out, f"replayed {run['name']}: mean {', '.join(off)}")
    for one in found["skipped"]:
        print_text(out, f"skipped {one['rows']} rows: {one['reason']}", "dim")
    for line in found["not_scored_here"]:
        print_text(out, f"not scored: {line}", "dim")
    print_text(
        out, f"{found['scored_rows']:,} of {found['rows']:,} rows scored; {found['provenance']['calibration']}", "dim"
    )


def goal_line(goal: Mapping[str, Any]) -> str:
    """One of the project's goals and what was reached, as a line."""
    reached = goal["reached"]
    parts = [
        f"{name} {100 * reached[f'{name}_abs_error']:.1f} % (goal {100 * goal[name]:.0f})"
        for name in ("median", "p95")
        if goal.get(name) is not None
    ]
    return f"{'met' if goal['met'] else 'NOT met'}: {goal['goal']}: {', '.join(parts)}, n {reached['n']:,}"


def _row(one: Mapping[str, Any]) -> list[str]:
    kind = "" if one["kind"] == "kernel" else f" ({one['kind']})"
    return [
        # Under the name of its table, so that a row fits in 80 columns.
        one["source"].removesuffix(".csv") + "\n  " + one["family"] + kind,
        f"{one['n']:,}",
        _percent(one["median_abs_error"]),
        _percent(one["p90_abs_error"]),
        f"{100 * one['bias']:+.1f}",
        _percent(one["baseline_datasheet_median"]),
        _percent(one["baseline_linear_median"]),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"
