"""`kvsim run`: one scenario, one Result."""

import argparse
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options, add_simulation_options
from kvsim.cli.studies.options import add_worker_options
from kvsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from kvsim.capacity.arguments import Flag
    from kvsim.metrics.tables import Pieces
    from kvsim.scenario.resolve import Scenario


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "run",
        help="simulate one scenario",
        description="Simulate one scenario and print where its KV memory went and what that did to latency.",
        allow_abbrev=False,
    )
    add_simulation_options(parser)
    parser.add_argument("--variant", metavar="NAME", help="which variant of the file, where it has variants")
    parser.add_argument("--engine-args", metavar="TEXT", help="a pasted command: 'vllm serve ...' or sglang's")
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write the run folder there")
    parser.add_argument(
        "--addresses",
        action="store_true",
        help="with -o, also write where every slot of the pool goes: addresses.parquet, one to two rows an output "
        "token, and some more whenever the slots of a radix tree, which lie apart, are used again (70 bytes each in "
        "memory, 3 on disk), and a map of it; every step is taken, none leapt: slower",
    )
    parser.add_argument(
        "--prompts",
        action="store_true",
        help="with -o, also write what prompts share: prompts.parquet, a row for each shared or own part of each, and "
        "the tree of prefixes; only where prefixes are cached",
    )
    parser.add_argument(
        "--kv-events",
        metavar="FILE",
        help="write what a cache-aware router would hear of the prefix cache there, as JSON Lines (vLLM's KV events); "
        "with -o, into the run folder too",
    )
    add_worker_options(parser, "for a fleet whose router is stateless; default: this process alone")
    add_output_options(parser, "print the summary as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Load, run, write where asked, print."""
    from dataclasses import asdict

    from kvsim import scenario, study
    from kvsim.cli.progress import progress_bar

    for asked, option in ((args.addresses, "--addresses"), (args.prompts, "--prompts")):
        if asked and args.folder is None:
            raise InputError(f"{option}: what it records goes into a run folder; name one with -o DIR")
    if args.folder is not None:
        from kvsim.reporting.run_folder import check_run_folder

        check_run_folder(args.folder)
    if args.kv_events is not None:
        from kvsim.reporting.run_folder import check_file

        check_file(args.kv_events, "--kv-events")
    pasted: list[str] = []
    flags: tuple[Flag, ...] = ()
    if args.engine_args is not None:
        from kvsim.cli.capacity.commands import as_overrides

        pasted, flags = as_overrides(args.engine_args)
    loaded = scenario.load(args.scenario, overrides=[*pasted, *args.overrides], variant=args.variant)
    fleet = loaded.settings.fleet is not None
    with progress_bar(args) as progress, _pieces(args, fleet=fleet) as pieces, _workers(args, loaded) as workers:
        result = study.run(
            loaded,
            seed=args.seed,
            stepwise=args.stepwise,
            check=args.check,
            addresses=args.addresses,
            kv_events=args.kv_events is not None,
            prompts=args.prompts,
            progress=progress,
            pieces=pieces,
            **workers,
        )
        if args.kv_events is not None:
            from kvsim.metrics.result import write_whole

            write_whole(Path(args.kv_events), result.kv_event_lines())
        if args.folder is not None:
            from kvsim.reporting.run_folder import write_run

            write_run(result, args.folder, progress)
    if args.json:
        from kvsim.metrics.result import to_json

        told: dict[str, Any] = {"engine_args": [asdict(flag) for flag in flags]} if flags else {}
        print(to_json({**result.summary, **told}), end="")
        return 0
    from kvsim.cli.show import print_results

    print_results(args, [result])
    if flags:
        from kvsim.cli.capacity.commands import print_flags

        print_flags(args, map(asdict, flags))
    if result.wall_s is not None:
        print(f"simulated in {result.wall_s:.2f} s")
    if args.kv_events is not None:
        print(f"KV events written to {args.kv_events}")
    if args.folder is not None:
        print(f"written to {args.folder}")
    return 0


@contextmanager
def _workers(args: argparse.Namespace, scenario: "Scenario") -> "Iterator[dict[str, Executor]]":
    """Who works on the replicas of a fleet, as an argument of `study.run`; none where nobody was asked for."""
    if args.jobs is None and args.cluster is None:
        yield {}
        return
    from kvsim.engine.fleet import ROUTERS
    from kvsim.study.executors import opened

    fleet = scenario.settings.fleet
    stateless = [name for name, router in ROUTERS.items() if router.stateless]
    if fleet is None or fleet.router.name not in stateless:
        raise InputError(
            f"--jobs, --cluster: work is shared out for a fleet whose router is one of {', '.join(stateless)}"
        )
    with opened(jobs=args.jobs, cluster=args.cluster) as workers:
        yield {"executor": workers.executor}


def _pieces(args: argparse.Namespace, *, fleet: bool) -> "AbstractContextManager[Pieces | None]":
    """Where the records of the run go: into the run folder, or nowhere; None: they are kept, as addresses are."""
    from kvsim.metrics.tables import Dropped, ParquetPieces

    if args.addresses or args.prompts:
        return nullcontext()
    return nullcontext(Dropped()) if args.folder is None or fleet else ParquetPieces(args.folder)
