"""`kvsim plan`: which set-up meets the goals with the fewest GPUs and at the lowest cost; where its cliff is."""

import argparse
from typing import TYPE_CHECKING, Any

from kvsim.cli.options import add_output_options, add_scenario_options, share, whole
from kvsim.cli.studies.options import add_worker_options, chosen_variants
from kvsim.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kvsim.scenario.resolve import Scenario

NOTHING_MEETS = 3
"""Exit code where no candidate meets the goals."""

KEYS = {
    "gpus": "gpu",
    "tp": "tensor_parallel",
    "kv_dtype": "model.kv_dtype",
    "block_size": "allocator.block_size",
    "prefix_caching": "allocator.prefix_caching",
    "utilization": "capacity.gpu_memory_utilization",
}
"""Options that give values of one key, and the key."""

_SWITCH = {"on": True, "off": False}


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "plan",
        help="which GPU, how many, and which settings meet latency goals at what cost",
        description="Find the candidates that meet latency goals under a scenario's traffic, the fewest GPUs and the "
        "lowest cost among them, the largest rate that each bears, what binds it and what to change next. Exit code 3: "
        "none meets the goals.",
        allow_abbrev=False,
    )
    add_scenario_options(parser)
    parser.add_argument(
        "--slo",
        metavar="GOALS",
        help="e.g. 'ttft_p99<1s, tpot_p95<50ms, rejected<0.1%%'; default: the scenario's slo, as 99th percentiles",
    )
    candidates = parser.add_argument_group("candidates: all combinations; by default TP 1, 2, 4 and 8")
    candidates.add_argument("--variant", metavar="NAME", dest="variants", action="append", help="may be repeated")
    candidates.add_argument("--gpus", metavar="A,B", help="GPUs, e.g. H100,A100 (see `kvsim gpus`)")
    candidates.add_argument("--tp", metavar="1,2", help="GPUs that share every layer of a replica")
    candidates.add_argument(
        "--replicas", metavar="1..8", type=_counts, help="how many may be; the fewest that do are found"
    )
    candidates.add_argument("--kv-dtype", metavar="A,B", help="number formats of the KV cache, e.g. bf16,fp8")
    candidates.add_argument("--block-size", metavar="A,B", help="slots of a block")
    candidates.add_argument("--prefix-caching", metavar="on,off", help="keep prefixes, or do not")
    candidates.add_argument("--utilization", metavar="A,B", help="shares of the GPU's memory, e.g. 0.9,0.95")
    candidates.add_argument(
        "--vary", metavar="KEY=A,B", dest="choices", action="append", default=[], help="values of any other key"
    )
    parser.add_argument(
        "--where-is-the-cliff",
        action="store_true",
        help="of one candidate: sweep the load, and mark the knee of latency, preemption onset and queue blow-up",
    )
    parser.add_argument(
        "--replications", metavar="R", type=whole, default=3, help="runs of each trial, on the same streams (default 3)"
    )
    parser.add_argument(
        "--tolerance", metavar="SHARE", type=share, default=0.05, help="how exact largest rates are (default 5%%)"
    )
    add_worker_options(parser, "default: one a core")
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write the plan, its table and its figure there")
    add_output_options(parser, "print the plan as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Work out the plan, or the cliff; write where asked; print. 3 where nothing meets the goals."""
    from kvsim.reporting.run_folder import check_writable

    if args.folder is not None:
        check_writable(args.folder)
    scenarios = chosen_variants(args.scenario, args)
    choices = _choices(args)
    return _cliff(args, scenarios, choices) if args.where_is_the_cliff else _plan(args, scenarios, choices)


def _plan(args: argparse.Namespace, scenarios: "list[Scenario]", choices: "Mapping[str, Sequence[Any]]") -> int:
    from kvsim import study
    from kvsim.cli.studies.progress import study_bar
    from kvsim.reporting.plan import plan_summary, write_plan

    with study_bar(args) as progress:
        plan = study.plan(
            scenarios,
            args.slo,
            choices=choices,
            replicas=args.replicas,
            replications=args.replications,
            seed=args.seed,
            tolerance=args.tolerance,
            jobs=args.jobs,
            cluster=args.cluster,
            progress=progress,
        )
    if args.folder is not None:
        write_plan(plan, args.folder)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(plan_summary(plan))
    else:
        from kvsim.cli.studies.plan_show import print_plan

        print_plan(args, plan)
    return 0 if plan.fewest is not None else NOTHING_MEETS


def _cliff(args: argparse.Namespace, scenarios: "list[Scenario]", choices: "Mapping[str, Sequence[Any]]") -> int:
    from kvsim.cli.studies.progress import study_bar
    from kvsim.reporting.plan import cliff_summary, write_cliff
    from kvsim.study.planning.ask import where_is_the_cliff

    if args.slo is not None:
        raise InputError("--slo: a cliff has no goals; leave it out, or leave --where-is-the-cliff out")
    with study_bar(args) as progress:
        cliff = where_is_the_cliff(
            scenarios,
            choices=choices,
            replicas=args.replicas,
            replications=args.replications,
            seed=args.seed,
            jobs=args.jobs,
            cluster=args.cluster,
            progress=progress,
        )
    if args.folder is not None:
        write_cliff(cliff, args.folder)
    if args.json:
        from kvsim.cli.show import print_json

        print_json(cliff_summary(cliff))
    else:
        from kvsim.cli.studies.plan_show import print_cliff

        print_cliff(args, cliff)
    return 0


def _choices(args: argparse.Namespace) -> "Mapping[str, Sequence[Any]]":
    """Dotted keys to values, in the order of the options."""
    from kvsim.scenario.reading.loading import parse_value
    from kvsim.scenario.variants import varied

    found: dict[str, list[Any]] = {}
    for option, key in KEYS.items():
        text = getattr(args, option)
        if text is not None:
            words = [word.strip() for word in text.split(",") if word.strip()]
            found[key] = _values(f"--{option.replace('_', '-')}", words)
    for text in args.choices:
        key, values = varied(text)
        if key in found:
            raise InputError(f"--vary {key}: its values are given twice; give them once")
        found[key] = [parse_value(value) for value in values]
    return found


def _values(option: str, words: "Sequence[str]") -> list[Any]:
    from kvsim.scenario.reading.loading import parse_value

    if not words:
        raise InputError(f"{option}: names no candidate; give values with commas between")
    twice = next((word for at, word in enumerate(words) if word in words[:at]), None)
    if twice is not None:
        raise InputError(f"{option}: {twice} is given twice; give each value once")
    if option == "--prefix-caching":
        wrong = next((word for word in words if word not in _SWITCH), None)
        if wrong is not None:
            raise InputError(f"{option}: {wrong!r} is neither on nor off; write on, off, or on,off")
        return [_SWITCH[word] for word in words]
    return [parse_value(word) for word in words]


def _counts(text: str) -> list[int]:
    """`1..8` or `1,2,4`."""
    from kvsim.scenario.schema.fleet import MOST_REPLICAS

    low, dots, high = text.partition("..")
    if dots:
        first, last = whole(low.strip()), whole(high.strip())
        if last < first:
            raise argparse.ArgumentTypeError(f"{text!r} is empty; write the smaller end first, such as 1..8")
        if last > MOST_REPLICAS:
            raise argparse.ArgumentTypeError(f"{text!r}: a fleet has at most {MOST_REPLICAS:,} replicas, such as 1..8")
        return list(range(first, last + 1))
    return [whole(word.strip()) for word in text.split(",")]
