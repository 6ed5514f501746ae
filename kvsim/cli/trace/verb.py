"""`kvsim trace`: its three actions."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options
from kvsim.cli.trace.options import add_reading_options


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "trace",
        help="read a trace: what it holds, in another form, or as traffic fitted to it",
        description="Read a recorded workload in any of the forms people have.",
        allow_abbrev=False,
    )
    actions: Any = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_inspect(actions)
    _add_convert(actions)
    _add_fit(actions)


def _add_inspect(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser(
        "inspect",
        help="what a trace holds and what it is like",
        description="Print what was read and what was not, lengths, arrivals, sessions and what prompts share. "
        "Of a ServeGen folder or archive: its clients.",
        allow_abbrev=False,
    )
    add_reading_options(parser)
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write trace.json and a figure there")
    add_output_options(parser, "print everything as JSON, and nothing else")
    parser.set_defaults(execute=_inspect)


def _add_convert(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser(
        "convert",
        help="write a trace as Mooncake JSON lines or as Vidur's CSV",
        description="Write the requests of a trace in a form that other tools replay: mooncake (vLLM, SGLang, aiperf, "
        "Dynamo) or vidur. What the form cannot say is told on standard error.",
        allow_abbrev=False,
    )
    add_reading_options(parser)
    parser.add_argument("--to", choices=("mooncake", "vidur"), default="mooncake", help="the form; default: mooncake")
    parser.add_argument("-o", metavar="FILE", dest="target", help="the file; default: standard output")
    parser.set_defaults(execute=_convert)


def _add_fit(actions: Any) -> None:
    parser: argparse.ArgumentParser = actions.add_parser(
        "fit",
        help="print a scenario's workload section fitted to a trace",
        description="Fit laws to the lengths and the arrivals of a trace, and print them as the workload section of a "
        "scenario, with the distance of every law that was tried. Of a ServeGen folder or archive: all clients as one.",
        allow_abbrev=False,
    )
    add_reading_options(parser)
    parser.add_argument(
        "--lengths",
        choices=("quantiles", "mixture", "single"),
        default="quantiles",
        help="the kind of law; where a scenario cannot say it yet, quantiles; default: quantiles",
    )
    add_output_options(parser, "print all fits as JSON, and nothing else")
    parser.set_defaults(execute=_fit)


def _inspect(args: argparse.Namespace) -> int:
    from kvsim.cli.trace.inspect import inspect_trace

    return inspect_trace(args)


def _convert(args: argparse.Namespace) -> int:
    from kvsim.cli.trace.convert import convert_trace

    return convert_trace(args)


def _fit(args: argparse.Namespace) -> int:
    from kvsim.cli.show import print_json
    from kvsim.cli.trace.options import population, recording
    from kvsim.workload.fit.yaml_text import scenario_text

    clients = population(args)
    if clients is None:
        from kvsim.workload.fit.workload import fit_workload
        from kvsim.workload.statistics.inspect import inspect

        fit = fit_workload(inspect(recording(args)), args.lengths)
    else:
        from kvsim.workload.fit.population import fit_population
        from kvsim.workload.statistics.population import inspect_population

        fit = fit_population(*inspect_population(clients), args.lengths)
    if args.json:
        print_json(fit.record())
    else:
        # As it is, whatever the terminal's width: it is to be copied into a file.
        print(scenario_text(fit), end="")
    return 0
