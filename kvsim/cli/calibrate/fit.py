"""`kvsim calibrate fit`: parameters of the cost model, from a run on this GPU or from a folder of tables."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvsim.cli.calibrate.accept import add_accept
from kvsim.cli.options import add_output_options, one_thread
from kvsim.errors import InputError


def add(actions: Any) -> None:
    """Say what the action takes."""
    fit: argparse.ArgumentParser = actions.add_parser(
        "fit",
        help="fit what this GPU measured, or the tables of a folder, and write a calibration file",
        description="Fit the results of `kvsim calibrate run` (a JSON Lines file), or every known table of a folder "
        "(kernel_gemm.csv, kernel_attn_decode.csv, ...), and write the parameters with their standard errors, fitted "
        "ranges and the hash of each input. A scenario takes the file as `timing: {name: calibrated, file: FILE}`.",
        allow_abbrev=False,
    )
    fit.add_argument("data", metavar="FILE|DIR", help="results of one GPU, or a folder with any of the known tables")
    fit.add_argument("-o", metavar="FILE", dest="file", required=True, help="write the calibration there")
    fit.add_argument("--gpu", metavar="NAME", help="which GPU of `kvsim gpus` it is; of a folder: all rows must be")
    fit.add_argument(
        "--engines", metavar="FILE", help="of a folder: also fit engine overheads to its served runs, and write them"
    )
    fit.add_argument(
        "--figures", metavar="DIR", help="of results: draw each family there, measured, fitted and residuals"
    )
    add_accept(fit)
    add_output_options(fit, "print the calibration as JSON, and nothing else")
    fit.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    one_thread()
    if Path(args.data).is_dir():
        for option, given in (("--figures", args.figures), ("--accept", args.accept)):
            if given:
                raise InputError(f"{option}: {args.data} is a folder of tables; it goes with results of one GPU")
        return _folder(args)
    if args.engines is not None:
        raise InputError(f"--engines: {args.data} is no folder; served runs lie in a folder of tables")
    return _results(args)


def _results(args: argparse.Namespace) -> int:
    from kvsim.metrics.result import write_whole
    from kvsim.microbench.fit.fit import fit_results
    from kvsim.microbench.results import read_results
    from kvsim.reporting.run_folder import check_file, check_writable
    from kvsim.timing.fitting.calibration import to_json

    check_file(args.file)
    if args.figures is not None:
        check_writable(args.figures, "--figures")
    found = fit_results(read_results(Path(args.data)), gpu_name=args.gpu, accepted=args.accept)
    made = to_json(found.calibration)
    write_whole(Path(args.file), _text(made))
    if args.figures is not None:
        from kvsim.reporting.microbench.report import write_figures

        write_figures(found, Path(args.figures))
    _show(args, made, "Errors on the points fitted to; `kvsim calibrate validate` has those of held-out ones")
    return 0


def _folder(args: argparse.Namespace) -> int:
    from kvsim.metrics.result import write_whole
    from kvsim.timing.fitting.calibrate import calibrate
    from kvsim.timing.fitting.calibration import to_json
    from kvsim.timing.fitting.kernel_tables import TABLES, read_folder

    folder = Path(args.data)
    measured = read_folder(folder, gpu=args.gpu)
    if not measured.samples:
        raise InputError(f"{folder}: holds no table that can be fitted; known are {', '.join(TABLES)}")
    calibration = calibrate(measured)
    found = to_json(calibration)
    write_whole(Path(args.file), _text(found))
    if args.engines is not None:
        from kvsim.study.validation.served.shipped import fit_engines
        from kvsim.study.validation.served.tables import read_runs
        from kvsim.study.validation.validate import usable_runs

        write_whole(Path(args.engines), _text(fit_engines(usable_runs(read_runs(folder))[0], calibration)))
    _show(args, found, "Errors on the rows fitted to; `kvsim validate` has those of held-out ones")
    return 0


def _text(found: Mapping[str, Any]) -> bytes:
    return (json.dumps(found, indent=1) + "\n").encode()


def _show(args: argparse.Namespace, found: Mapping[str, Any], about_errors: str) -> None:
    from kvsim.cli.show import Justify, console, print_json, print_rows, print_text

    if args.json:
        print_json(found)
        return
    out = console(args)
    columns: list[tuple[str, Justify]] = [("GPU", "left"), ("family", "left"), ("rows", "right")]
    columns += [("median\n|error| %", "right"), ("p90\n|error| %", "right"), ("parameters", "left")]
    rows = []
    for gpu, families in found["gpus"].items():
        for name, one in families.items():
            values = ", ".join(f"{key} {value['value']:.3g}" for key, value in one["parameters"].items())
            errors = [f"{100 * one[key]:.1f}" for key in ("median_abs_error", "p90_abs_error")]
            rows.append([gpu, name, f"{one['rows']:,}", *errors, values])
    print_rows(args, columns, rows)
    print_text(out, f"{about_errors}. {found['provenance']}.", "dim")
    about = found.get("about", {})
    for name in about.get("accepted", ()):
        print_text(out, f"accepted: {name}", "bold")
    for name, short in about.get("left_out", {}).items():
        print_text(out, f"left out: {name} has {short}", "bold")
