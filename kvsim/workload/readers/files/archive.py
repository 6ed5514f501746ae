"""Folders and tar archives (plain or gzip) as named texts, read once from front to back."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from kvsim.errors import InputError
from kvsim.workload.readers.files.text import binary

_MAGIC_AT, _MAGIC = 257, b"ustar"
_FIRST_NAMES = 64
_CHUNK_BYTES = 1 << 16


def is_tar(path: Path) -> bool:
    """Whether a regular file is a tar archive, gzip or not. Never raises on damaged data."""
    from zlib import error as zlib_error

    try:
        with binary(path) as file:
            return file.read(_MAGIC_AT + len(_MAGIC))[_MAGIC_AT:] == _MAGIC
    except (OSError, EOFError, zlib_error):
        return False


def first_names(path: Path, name: str) -> tuple[str, ...]:
    """The names of the first files of an archive, without their folders."""
    found = []
    for member, _ in _tar_files(path, name):
        found.append(os.path.basename(member))
        if len(found) == _FIRST_NAMES:
            break
    return tuple(found)


def texts(path: Path, name: str) -> Iterator[tuple[str, str]]:
    """(name, text) of every file in a folder or archive, folders within included; a folder's by name."""
    if os.path.isdir(path):
        pairs: Iterator[tuple[str, bytes]] = _folder_files(path, name)
    else:
        pairs = _tar_files(path, name)
    for member, data in pairs:
        try:
            yield member, data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name}: {member} is not UTF-8 text ({error.reason}); save it as UTF-8") from None


def _folder_files(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    for folder, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            place = Path(folder, file)
            if not place.is_file():
                continue
            try:
                data = place.read_bytes()
            except OSError as error:
                raise InputError(f"{name}: {file} cannot be read ({error.strerror})") from None
            yield os.path.relpath(place, path), data


def _tar_files(path: Path, name: str) -> Iterator[tuple[str, bytes]]:
    from zlib import error as zlib_error

    try:
        with binary(path) as file:
            with tarfile.open(fileobj=file, mode="r|") as tar:
                for member in tar:
                    # Only what a regular member holds is read; nothing is ever unpacked to disk.
                    content = tar.extractfile(member) if member.isfile() else None
                    if content is not None:
                        yield member.name, content.read()
            while file.read(_CHUNK_BYTES):
                pass  # To the end, where gzip's checksum is.
    except (tarfile.TarError, EOFError, OSError, zlib_error) as error:
        raise InputError(f"{name}: the archive is damaged or cut off ({error}); fetch the file again") from None
