"""Opens trace files, plain or gzip, as lines of text; every way in which that fails becomes one
InputError.
"""

import io
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, cast

from kvsim.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


def text_lines(path: str | os.PathLike[str], name: str) -> Iterator[str]:
    """The lines of a file, ends included, one by one. Gzip is recognised by content, not by name.

    `name` is what messages call the file. InputError where it does not exist, is not a regular file, cannot
    be read, ends within its gzip stream, or is not UTF-8 (a byte-order mark is skipped).
    """
    from zlib import error as zlib_error

    try:
        yield from _decoded(path, name)
    except (EOFError, zlib_error) as error:
        raise _damaged(path, name, error) from None
    except OSError as error:
        # Python's own text for an errno names the file again; a gzip error has no errno.
        if error.errno is None:
            raise _damaged(path, name, error) from None
        raise InputError(f"{name}: cannot be read ({error.strerror}); give a readable trace file") from None


def _damaged(path: str | os.PathLike[str], name: str, error: Exception) -> InputError:
    lines = _whole_lines(path)
    return InputError(f"{name}: the gzip data is damaged or cut off after line {lines} ({error}); fetch the file again")


def _decoded(path: str | os.PathLike[str], name: str) -> Iterator[str]:
    try:
        with _open(path, name) as file:
            yield from file
    except UnicodeDecodeError as error:
        # Text is decoded in blocks, so where the reading stopped says little about the line. Looking for it may come
        # upon damaged gzip data, and then that is what is wrong.
        line = _line_not_utf8(path)
        raise InputError(f"{name}: line {line} is not UTF-8 text ({error.reason}); save the trace as UTF-8") from None


def _open(path: str | os.PathLike[str], name: str) -> IO[str]:
    # A trace may be read twice (once for its span), which a pipe cannot be.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise InputError(f"{name}: not a file but a folder, pipe or device; give a trace file, plain or .gz")
    return io.TextIOWrapper(binary(path), encoding="utf-8-sig", newline="")


def binary(path: str | os.PathLike[str]) -> IO[bytes]:
    """The bytes of a file, out of its gzip stream if it is one. OSError where it cannot be opened."""
    with open(path, "rb") as raw:
        zipped = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    if not zipped:
        return open(path, "rb")
    import gzip

    return cast(IO[bytes], gzip.open(path, "rb"))


def _whole_lines(path: str | os.PathLike[str]) -> int:
    """How many lines can be read of a file that cannot be read to its end."""
    from zlib import error as zlib_error

    number = 0
    with suppress(EOFError, OSError, zlib_error), binary(path) as file:
        for _ in file:
            number += 1
    return number


def _line_not_utf8(path: str | os.PathLike[str]) -> int:
    number = 0
    with binary(path) as file:
        for line in file:
            number += 1
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
    return number
