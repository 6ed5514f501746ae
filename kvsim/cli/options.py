"""Options that several verbs share, so that they read the same everywhere."""

import argparse
import os


def add_output_options(parser: argparse.ArgumentParser, json_help: str) -> None:
    """How the answer is printed."""
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument("--no-color", action="store_true", help="print without colours")


def one_thread() -> None:
    """Keep linear algebra on one thread, unless the user set otherwise; has an effect before numpy is loaded only.

    The matrices of fits are small: threads wait for one another longer than they compute.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def add_scenario_options(parser: argparse.ArgumentParser) -> None:
    """What is simulated: the scenario, changes to it, and the seed."""
    parser.add_argument("scenario", metavar="FILE", help="scenario, a YAML file (see `kvsim schema`)")
    add_changes(parser)


def add_changes(parser: "argparse.ArgumentParser | argparse._ArgumentGroup") -> None:
    """What is changed about a scenario."""
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        dest="overrides",
        action="append",
        default=[],
        type=_override,
        help="set one key of the scenario, e.g. workload.rate=12/s; may be repeated",
    )
    parser.add_argument("--seed", metavar="N", type=_seed, help="seed of the random streams; beats the file's")


def add_simulation_options(parser: argparse.ArgumentParser) -> None:
    """What is simulated, and how the engine goes about it."""
    add_scenario_options(parser)
    parser.add_argument(
        "--stepwise", action="store_true", help="take every step instead of leaping: same result, slower"
    )
    parser.add_argument("--check", action="store_true", help="check every invariant after every event: slower")


def _override(text: str) -> str:
    key, equals, _ = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, e.g. workload.rate=12/s")
    return text


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 1 << 128:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no seed; a seed is a whole number, 0 or more, of at most 128 bits"
        )
    return seed


def whole(text: str) -> int:
    """A number of the command line that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at least 1")
    return int(text)


def share(text: str) -> float:
    """A share of the command line, neither none nor the whole."""
    from kvsim.units import parse_share

    try:
        found = parse_share(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share above 0 and below 1; 5% or 0.05 is")
    return found


def seconds(text: str) -> float:
    """A time of the command line above 0: a number of seconds, or one with its unit."""
    from kvsim.units import parse_seconds

    bare = text.strip()[-1:] in {*"0123456789."}
    try:
        found = parse_seconds(f"{text}s" if bare else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time above 0; write seconds, such as 15, or 500ms")
    return found
