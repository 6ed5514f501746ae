"""`kvsim diagnose`: what presses on the KV memory of a run, and what each cure brings."""

import argparse
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_changes, add_output_options, whole
from kvsim.errors import InputError

if TYPE_CHECKING:
    from kvsim.study.diagnosis import Diagnosis

STATIC = ("tokens", "block_tokens", "kv_heads", "head_dim", "latent", "reusable_prefix")
"""The numbers of the static form, as the library calls them."""


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "diagnose",
        help="what presses on a run's KV memory, and what each cure brings",
        description="Say which pressure on the KV memory of a run dominates: representation (bytes a token), "
        "organisation (slots without valid KV) or reuse (repeated prefixes). Then run it again with each known cure, "
        "on the same random streams, and print what that brings. Or tell the three for given numbers, without a run.",
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="a folder of `kvsim run -o`, or a scenario file")
    parser.add_argument("--variant", metavar="NAME", help="which variant of the file, where it has variants")
    add_changes(parser)
    parser.add_argument("--jobs", metavar="N", type=whole, help="processes that run the cures (default: one a core)")
    parser.add_argument(
        "-o", metavar="DIR", dest="folder", help="write diagnosis.json, the figure and a README.md there"
    )
    add_output_options(parser, "print the diagnosis as JSON, and nothing else")
    static = parser.add_argument_group("for given numbers, in place of RUN (all of them)")
    for name, text in (
        ("tokens", "length of a sequence"),
        ("block-tokens", "slots of a block"),
        ("kv-heads", "KV heads of a layer"),
        ("head-dim", "width of a head"),
        ("latent", "width of the one latent that would be kept in place of K and V"),
        ("reusable-prefix", "tokens at the start that are there already"),
    ):
        static.add_argument(f"--{name}", metavar="N", type=int, help=text)
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Diagnose a run, or tell the static form."""
    given = [name for name in STATIC if getattr(args, name) is not None]
    if args.run is not None:
        if given:
            raise InputError(
                f"--{given[0].replace('_', '-')}: is for given numbers, without a run; leave one of both out"
            )
        return _diagnose(args)
    if missing := [name for name in STATIC if name not in given]:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        what = f"{flags} missing" if given else "nothing is named"
        raise InputError(
            f"diagnose: {what}; name a run folder or a scenario file, or give all of the numbers "
            f"({', '.join('--' + name.replace('_', '-') for name in STATIC)})"
        )
    return _tell(args)


def _tell(args: argparse.Namespace) -> int:
    from kvsim.cli.show import console, print_json, print_text
    from kvsim.reporting.diagnosis.verdict import static_lines
    from kvsim.study.diagnosis.record import static_record
    from kvsim.study.diagnosis.static import static_pressures

    for option in ("variant", "seed", "jobs", "folder"):
        if getattr(args, option) is not None:
            flag = "-o" if option == "folder" else f"--{option}"
            raise InputError(f"{flag}: is for a run; leave it out with given numbers")
    if args.overrides:
        raise InputError("--set: is for a run; leave it out with given numbers")
    try:
        found = static_pressures(**{name: getattr(args, name) for name in STATIC})
    except ValueError as error:
        argument, _, rest = str(error).partition(":")
        raise InputError(f"--{argument.replace('_', '-')}:{rest}") from error
    if args.json:
        print_json(static_record(found))
        return 0
    out = console(args)
    for line in static_lines(found):
        print_text(out, line)
    return 0


def _diagnose(args: argparse.Namespace) -> int:
    from kvsim.cli.studies.progress import study_bar
    from kvsim.reporting.diagnosis import verdict
    from kvsim.study.diagnosis import diagnose, scenario_of
    from kvsim.study.diagnosis.record import record

    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    scenario, seed, stored = scenario_of(args.run, overrides=args.overrides, variant=args.variant)
    if args.seed is not None or args.overrides:
        stored = None
    with study_bar(args) as progress:
        found = diagnose(
            scenario,
            seed=seed if args.seed is None else args.seed,
            jobs=args.jobs,
            stored=stored,
            progress=progress,
        )
    told = record(found, verdict(found))
    if args.folder is not None:
        from kvsim.reporting.diagnosis import write_diagnosis

        write_diagnosis(found, told, args.folder)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(told)
        return 0
    _print(args, found)
    if args.folder is not None:
        print(f"written to {args.folder}")
    return 0


def _print(args: argparse.Namespace, found: "Diagnosis") -> None:
    from kvsim.cli.show import Justify, console, print_rows, print_sources, print_text
    from kvsim.reporting.diagnosis import cure_rows, pressure_rows, verdict
    from kvsim.reporting.diagnosis.table import headings
    from kvsim.reporting.finding import measured

    out = console(args)
    print_text(out, verdict(found))
    for line in measured(found.result):
        print_text(out, line, "dim")
    out.print()
    pressures: list[tuple[str, Justify]] = [("pressure", "left"), ("% of\ntaken", "right"), ("measured", "left")]
    print_rows(args, pressures, pressure_rows(found.pressures))
    out.print()
    columns: list[tuple[str, Justify]] = [("", "left"), *((heading, "right") for heading in headings(found))]
    print_rows(args, columns, [[name, *cells] for name, cells in cure_rows(found)])
    out.print()
    for one in found.refused:
        print_text(out, f"note: {one.cure.name} cannot be had: {one.error}")
    for note in found.notes:
        print_text(out, f"note: {note}")
    print_sources(out, [found.result])
