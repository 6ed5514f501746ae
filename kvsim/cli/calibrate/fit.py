"""`kvsim calibrate fit`: parameters of the cost model from tables of measured kernels and served runs."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvsim.cli.options import add_output_options, one_thread


def add(actions: Any) -> None:
    """Say what the action takes."""
    fit: argparse.ArgumentParser = actions.add_parser(
        "fit",
        help="fit tables of a folder and write a calibration file",
        description="Fit every known table of a folder (kernel_gemm.csv, kernel_attn_decode.csv, ...) and write the "
        "parameters with their standard errors, fitted ranges and the hash of each input.",
        allow_abbrev=False,
    )
    fit.add_argument("data", metavar="DIR", help="a folder with any of the known tables")
    fit.add_argument("-o", metavar="FILE", dest="file", required=True, help="write the calibration there")
    fit.add_argument("--gpu", metavar="NAME", help="the one GPU that all rows must be of")
    fit.add_argument(
        "--engines", metavar="FILE", help="also fit engine overheads to the served runs of DIR, and write them"
    )
    add_output_options(fit, "print the calibration as JSON, and nothing else")
    fit.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    one_thread()
    from kvsim.cli.show import print_json
    from kvsim.errors import InputError
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
    if args.json:
        print_json(found)
    else:
        _print(args, found)
    return 0


def _text(found: Mapping[str, Any]) -> bytes:
    return (json.dumps(found, indent=1) + "\n").encode()


def _print(args: argparse.Namespace, found: Mapping[str, Any]) -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_text

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
    print_text(
        out, f"Errors on the rows fitted to; `kvsim validate` has those of held-out ones. {found['provenance']}.", "dim"
    )
