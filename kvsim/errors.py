"""What kvsim raises: wrong input, a run that failed, something that does not fit.

Each class carries the exit code the command line ends with, so that `cli/` needs no table of its own.
"""


class KvsimError(Exception):
    """Anything kvsim says to a user on purpose: the message is complete and needs no traceback."""

    exit_code = 1


class InputError(KvsimError):
    """Wrong input: the message names the file, line, key and value, and says what would be right."""

    exit_code = 2


class PastClockError(InputError):
    """A request arrives past the end of the 64-bit clock: wrong only for a run that goes on until then."""


class RunError(KvsimError):
    """A run that cannot go on: no progress, or an invariant that `--check` found broken."""

    exit_code = 1


class CheckError(RunError):
    """An invariant is broken: slots or requests are not conserved, or the clock steps back. A bug, never bad input."""


class DoesNotFitError(KvsimError):
    """The model, or one request, does not fit the memory; no setting that was asked for meets the goal."""

    exit_code = 3


class NoGpuError(KvsimError):
    """There is no GPU that could be measured. The exit code is the one by which test tools know a skip."""

    exit_code = 77
