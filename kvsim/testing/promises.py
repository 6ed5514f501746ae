"""What a suite is made of: named checks, each of which raises CheckError when a promise is broken."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from kvsim.errors import CheckError

Make = TypeVar("Make", bound=Callable[..., Any])


def promise(kept: bool, broken: str) -> None:
    """Raise CheckError, saying what is `broken`, unless the promise is kept."""
    if not kept:
        raise CheckError(broken)


def same(ours: dict[str, Any], theirs: dict[str, Any], broken: str) -> None:
    """Two states must agree; the message names the first entry that differs."""
    if ours != theirs:
        for name in {**ours, **theirs}:
            promise(
                ours.get(name) == theirs.get(name),
                f"{broken}: {name} is {ours.get(name)}, not {theirs.get(name)}",
            )


def select(
    checks: Iterable[tuple[str, Callable[[Make], None]]], skip: Collection[str]
) -> list[tuple[str, Callable[[Make], None]]]:
    """The checks without those to skip; an unknown name in `skip` is a ValueError."""
    checks = list(checks)
    unknown = sorted(set(skip) - {name for name, _ in checks})
    if unknown:
        names = ", ".join(name for name, _ in checks)
        raise ValueError(f"skip names {', '.join(unknown)}; the checks are {names}")
    return [(name, check) for name, check in checks if name not in skip]


def run_all(checks: list[tuple[str, Callable[[Make], None]]], make: Make) -> None:
    """Run every check; one CheckError lists all that failed."""
    failures, first = [], None
    for name, check in checks:
        try:
            check(make)
        except Exception as error:
            what = str(error) if isinstance(error, CheckError) else f"{type(error).__name__}: {error}"
            failures.append(f"  {name}: {what}")
            first = first or error
    if failures:
        raise CheckError("\n".join([f"{len(failures)} of {len(checks)} promises are broken:", *failures])) from first
