"""`kvsim calibrate run`: measure this machine's GPU."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.calibrate.build import add_build_options, built
from kvsim.cli.options import add_output_options, seconds

if TYPE_CHECKING:
    from kvsim.microbench.harness.run import Outcome

_SEED_BITS = 32
"""The program's seed is an unsigned integer of so many bits."""


def add(actions: Any) -> None:
    """Say what the action takes."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "run",
        help="measure this machine's GPU: one to three minutes",
        description="Measure memory, matrix products, attention, copies, allocations and whole steps on the GPU here, "
        "each output checked, and write JSON Lines for `kvsim calibrate fit`. Exit code 77: there is no usable GPU.",
        allow_abbrev=False,
    )
    parser.add_argument("-o", metavar="FILE", dest="file", required=True, help="write the results there (JSON Lines)")
    parser.add_argument(
        "--preset", choices=("quick", "full", "tiny"), default="quick",
        help="quick: 60 s, full: 180 s; tiny: sizes for the tests (default: quick)",
    )  # fmt: skip
    parser.add_argument("--budget-s", metavar="S", type=seconds, help="stop after S seconds, and say what was skipped")
    parser.add_argument("--only", metavar="BENCH,...", type=_benches, default=[], help="these benchmarks alone")
    parser.add_argument("--seed", metavar="N", type=_seed, default=1, help="of the data and of the order of points")
    parser.add_argument("--verify-only", action="store_true", help="check the outputs and time nothing")
    parser.add_argument(
        "--frag", metavar="TRACE", action="append", help="an allocation trace to replay; may be repeated"
    )
    parser.add_argument("--program", metavar="FILE", help="a program that `kvsim calibrate build` made elsewhere")
    parser.add_argument("--cublas", metavar="FILE", help="libcublas.so.13; default: that of a wheel, or the loader's")
    add_build_options(parser)
    add_output_options(parser, "print what was measured, by benchmark, as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Look for a GPU, build, measure, print; say whether all outputs were right."""
    from kvsim.cli.progress import progress_bar
    from kvsim.errors import NoGpuError
    from kvsim.microbench.harness.run import PRESETS, TRACES, Order, measure, summary
    from kvsim.microbench.harness.toolchain import find_cublas, why_no_gpu

    _check(args)
    program = args.program
    missing = None if program else why_no_gpu()
    if missing is not None:
        raise NoGpuError(f"no usable GPU: {missing}; nothing was measured")
    if program is None:
        program = built(args)[1]
    order = Order(
        preset=args.preset,
        budget_s=args.budget_s,
        only=args.only,
        seed=args.seed,
        cublas=find_cublas(args.cublas),
        traces=sorted(TRACES.glob("*.txt")) if args.frag is None else [Path(path) for path in args.frag],
        verify_only=args.verify_only,
    )
    with progress_bar(args) as progress:
        from time import monotonic

        begun, budget_s = monotonic(), args.budget_s or PRESETS.get(args.preset, 60.0)

        def told(lines: int) -> None:
            if progress is not None:
                progress(min(1.0, (monotonic() - begun) / budget_s), f"{lines} lines")

        outcome = measure(Path(program), order, Path(args.file), told)
    if args.json:
        from kvsim.cli.show import print_json

        print_json({**summary(outcome), "file": args.file})
    else:
        _print(args, outcome)
    return 1 if outcome.failed else 0


def _check(args: argparse.Namespace) -> None:
    """What is named must be there, wherever the GPU is."""
    import os

    from kvsim.errors import InputError
    from kvsim.reporting.run_folder import check_file

    check_file(args.file)
    for trace in args.frag or ():
        if not Path(trace).is_file():
            raise InputError(f"--frag {trace}: is no file; name a trace that `kvsim calibrate trace` wrote")
    program = args.program
    if program is not None and not (Path(program).is_file() and os.access(program, os.X_OK)):
        raise InputError(f"--program {program}: is no program; name one that `kvsim calibrate build` made")


def _print(args: argparse.Namespace, outcome: "Outcome") -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text

    out = console(args)
    env, end = outcome.run.env, outcome.run.end
    print_text(out, f"{env.device} ({env.backend})", "bold")
    columns: list[tuple[str, Justify]] = [("benchmark", "left")]
    columns += [(name, "right") for name in ("points", "wrong", "skipped", "errors")]
    rows = [[bench, *(f"{value:,}" for value in outcome.count(bench).values())] for bench in outcome.benches]
    print_rows(args, columns, rows)
    for reason in outcome.reasons:
        print(f"not measured: {reason}")
    whole = "all was measured" if end is not None and end.complete else "not everything was measured"
    print(f"{whole}; written to {args.file}")


def _benches(text: str) -> list[str]:
    from kvsim.microbench.benches import BENCHES

    named = text.split(",")
    for one in named:
        if one not in BENCHES:
            raise argparse.ArgumentTypeError(f"{one!r} is no benchmark; there are {', '.join(BENCHES)}")
    return named


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) >= 1 << _SEED_BITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed; give a whole number from 0 to {(1 << _SEED_BITS) - 1}")
    return int(text)
