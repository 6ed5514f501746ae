"""The seam between a run and the forms of other tools."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kvsim.errors import InputError
from kvsim.metrics.result import Result


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported: the runs of a folder. `where` is the folder, for messages; `title` what they are of."""

    where: str
    title: str
    results: Sequence[Result]

    def alone(self, form: str) -> Result:
        """The one run. Raises InputError where there are several."""
        if len(self.results) > 1:
            names = ", ".join(result.name for result in self.results)
            raise InputError(
                f"{self.where}: is a comparison of {names}; --to {form} takes one run: name its sub-folder"
            )
        return self.results[0]

    def recorded(self, form: str, *tables: str) -> Result:
        """The one run, which recorded these tables. Raises InputError where there are several, or it did not."""
        result = self.alone(form)
        for table in tables:
            if table not in result.tables:
                raise InputError(
                    f"{self.where}: has no table {table}, as a fleet is recorded replica by replica; "
                    f"--to {form} takes a run of one replica"
                )
        return result


@dataclass(frozen=True, slots=True)
class Options:
    """What may be asked of an export. `every_s`: a look at the run every so many seconds; None: one at its end."""

    every_s: float | None = None


Files = Iterator[tuple[str, Iterable[str]]]
"""Names of files and their text, in pieces that are made as they are taken."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """One form.

    `name` is what `--to` takes, `meaning` a line for the help. `files` makes them; it raises InputError before it gives
    the first piece where the source does not have what the form shows. `single`: it is one file, which may go to
    standard output. `over_time`: it takes `Options.every_s`.
    """

    name: str
    meaning: str
    files: Callable[[Source, Options], Files]
    single: bool = True
    over_time: bool = False
