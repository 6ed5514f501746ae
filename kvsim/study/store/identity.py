"""What makes a run the same run, and a study the same study."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kvsim.errors import InputError
from kvsim.scenario.resolve import Scenario

_NAMES_ONLY = ("name", "description", "published", "seed")
"""Settings that do not change what a run gives; the seed stands beside them."""


def run_key(scenario: Scenario, seed: int, version: str) -> str:
    """Hash of all that decides the outcome of a run: settings, contents of the files they name, seed and version.

    64 hexadecimal digits. Names and paths do not count; so equal runs of two variants have one key.
    """
    settings = {key: value for key, value in scenario.to_dict().items() if key not in _NAMES_ONLY}
    for room, key, path in (
        ("model", "name", scenario.model),
        ("workload", "trace", scenario.trace),
        ("workload", "lengths_of", scenario.lengths_of),
        ("timing", "file", scenario.calibration),
    ):
        if path is not None and os.path.isfile(path):
            settings[room][key] = _digest_of(path)
    return digest({"settings": settings, "seed": seed, "version": version})


def digest(value: object) -> str:
    """SHA-256 of a value as JSON, independent of the order of keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _digest_of(path: str) -> str:
    status = os.stat(path)
    return _contents(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _contents(path: str, size: int, changed_ns: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Identity:
    """Which study it is: what people call it by, and the keys of its runs in order, hashed.

    `points` are the changes of each point as its user wrote them, `variants` the names of the scenario's variants.
    """

    scenario: str
    version: str
    seed: int | None
    replications: int
    variants: Sequence[str]
    points: Sequence[Mapping[str, Any]]
    runs: int
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        """As `study.json` holds it."""
        return {"kvsim": "study", **asdict(self)}

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """What is another in the `study.json` of a folder, in words; empty where it is the same study."""
        own = self.to_dict()
        if other.get("fingerprint") == own["fingerprint"]:
            return []
        names = ("scenario", "version", "seed", "replications", "variants")
        told = [
            f"{name} is {_told(name, other.get(name))} there and {_told(name, own[name])} here"
            for name in names
            if other.get(name) != own[name]
        ]
        if other.get("points") != json.loads(json.dumps(own["points"])):
            told.append("its points are others")
        return told or ["its scenario, or a file that it names, was another"]


def _told(name: str, value: Any) -> str:
    """A seed that nobody gave is that of the scenario; variants that there are not are none."""
    if name == "seed" and value is None:
        return "the scenario's own"
    if name == "variants":
        return ", ".join(value or ()) or "none"
    return str(value)


def read_identity(path: Path) -> dict[str, Any]:
    """The `study.json` of a folder. Raises InputError where it is none."""
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name another folder") from None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("kvsim") != "study" or not isinstance(found.get("fingerprint"), str):
        raise InputError(f"{path}: is damaged or no study of kvsim; name another folder, or delete this one")
    return found
