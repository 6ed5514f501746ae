"""`kvsim calibrate build`: compile the program that measures this GPU."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options
from kvsim.errors import InputError


def add(actions: Any) -> None:
    """Say what the action takes."""
    parser: argparse.ArgumentParser = actions.add_parser(
        "build",
        help="compile the program that measures a GPU",
        description="Compile the microbenchmark with nvcc: the one named, of CUDA_HOME, of PATH, or of the cuda extra "
        "(pip install 'kvsim[cuda]'). What was compiled before from the same sources is used again. Needs no GPU.",
        allow_abbrev=False,
    )
    add_build_options(parser)
    parser.add_argument("-o", metavar="FILE", dest="file", help="copy the program there, e.g. for another machine")
    add_output_options(parser, "print path, compiler and architectures as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """What `run` takes as well, since it builds where it must."""
    parser.add_argument("--nvcc", metavar="PATH", help="the CUDA compiler")
    parser.add_argument(
        "--arch",
        metavar="N,...",
        type=_architectures,
        help="architectures, e.g. 90 or 80,90; default: that of the GPU here, or 80,90,100,120",
    )


def built(args: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Where the program is and how it came to be there; the path again as text."""
    from kvsim.microbench.harness.build import ARCHITECTURES, build
    from kvsim.microbench.harness.toolchain import architecture, find_nvcc

    nvcc = find_nvcc(args.nvcc)
    here = architecture()
    architectures = args.arch or ([here] if here else list(ARCHITECTURES))
    path, fresh = build(nvcc, architectures)
    about = {"program": str(path), "nvcc": str(nvcc.path), "release": nvcc.release}
    return {**about, "architectures": architectures, "built_now": fresh}, str(path)


def execute(args: argparse.Namespace) -> int:
    """Build, copy where asked, say where it is."""
    import shutil

    from kvsim.reporting.run_folder import check_file

    if args.file is not None:
        check_file(args.file)
    about, path = built(args)
    if args.file is not None:
        shutil.copy2(path, args.file)
        about["program"] = args.file
    if args.json:
        from kvsim.cli.show import print_json

        print_json(about)
        return 0
    targets = ", ".join(f"sm_{one}" for one in about["architectures"])
    how = "built" if about["built_now"] else "built before"
    print(f"{about['program']}: {how} with {about['nvcc']} (release {about['release']}) for {targets}")
    return 0


def _architectures(text: str) -> list[str]:
    found = text.split(",")
    for one in found:
        if not one.rstrip("af").isdecimal():
            raise argparse.ArgumentTypeError(f"{one!r} is no architecture; say 90 for compute capability 9.0")
    if not found:
        raise InputError("--arch: names none")
    return found
