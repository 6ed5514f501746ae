"""How a line of a log becomes numbers: rules with named groups, and the notes they are written to.

The name of a group says what it holds: `..._gib` is memory with its unit, `set_...` a setting, `echo` the
engine's arguments as it prints them, `version`, `model` and `gpu` themselves, `max_concurrency` a rounded
number, anything else a whole number.
"""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kvsim.capacity.logs.printed import Printed, count, memory, rounded

COUNT = r"\d{1,20}(?:,\d{3}){0,6}"
"""A whole number, with or without separators."""

NUMBER = rf"{COUNT}(?:\.\d{{1,30}})?"
"""A number with or without decimals."""

SIZE = rf"-?{NUMBER} ?(?:[KMG]i?[Bb]|bytes)"
"""Memory with its unit."""

_SCALAR = re.compile(r"None|True|False|-?(?:0|[1-9]\d{0,30})|-?\d{1,30}\.\d{0,30}|'[^'\\]*'|\"[^\"\\]*\"")

_LONGEST_SHOWN = 300
"""Characters of a line that are kept with a number: arguments are echoed in lines of many thousands."""

Keep = Literal["first", "last", "sum", "exact"]
"""Which of several numbers of one name a rank keeps; `exact`: the one whose digits say most, else the first."""


@dataclass(frozen=True)
class Rule:
    """One kind of line: every such line holds `hint`, which is cheap to look for, and matches `pattern`."""

    hint: str
    pattern: re.Pattern[str]
    keep: Keep = "first"
    reason_class: str | None = None
    restarts: bool = False
    ready: bool = False


@dataclass(frozen=True)
class Line:
    """One line without colours: its number from 1, its text, the rank that printed it ("" for none)."""

    number: int
    text: str
    rank: str


def rule(
    hint: str,
    pattern: str,
    *,
    keep: Keep = "first",
    reason_class: str | None = None,
    restarts: bool = False,
    ready: bool = False,
) -> Rule:
    """Make a rule. `reason_class`: the line says why the start fails; `restarts`: it begins a new start;
    `ready`: it ends one."""
    return Rule(hint, re.compile(pattern), keep, reason_class, restarts, ready)


@dataclass
class Notes:
    """What has been read of one start."""

    version: str | None = None
    model: str | None = None
    gpu: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    ranks: dict[str, dict[str, Printed]] = field(default_factory=dict)
    started: bool = False
    reason_class: str | None = None
    reason: Line | None = None

    @property
    def pool_is_sized(self) -> bool:
        """Whether a line has told the KV memory or the pool."""
        pool = {"kv_memory_gib", "k_gib", "kv_tokens", "kv_blocks"}
        return any(pool & numbers.keys() for numbers in self.ranks.values())

    def take(self, rule: Rule, match: re.Match[str], line: Line, echoed: dict[str, str]) -> None:
        """Write down what a line says. `echoed` maps an engine's argument names to kvsim's."""
        # Once the engine is up, what fails is a request.
        if rule.reason_class is not None and self.reason is None and not self.started:
            self.reason_class, self.reason = self._when(rule.reason_class), line
        self.started |= rule.ready and self.pool_is_sized
        for name, text in match.groupdict().items():
            if text is None:
                continue
            if name == "echo":
                for argument, value in arguments_of(text):
                    if argument in echoed:
                        self._set(echoed[argument], value_of(value))
            elif name in ("version", "model", "gpu"):
                if getattr(self, name) is None:
                    setattr(self, name, text)
            elif name.startswith("set_"):
                self._set(name.removeprefix("set_"), value_of(text.replace(",", "")), again=rule.keep == "last")
            else:
                self._number(name, text, rule.keep, line)

    def _when(self, reason_class: str) -> str:
        if reason_class == "oom":
            return "oom_after_kv" if self.pool_is_sized else "oom_before_kv"
        return reason_class

    def _set(self, name: str, value: Any, again: bool = False) -> None:
        if value in (None, "auto"):
            return  # left to the engine; a later line may say what it chose
        if name == "model":
            self.model = self.model or str(value)
        elif again or name not in self.settings:
            self.settings[name] = value

    def _number(self, name: str, text: str, keep: Keep, line: Line) -> None:
        numbers = self.ranks.setdefault(line.rank, {})
        reading = memory if name.endswith("_gib") else rounded if name == "max_concurrency" else count
        number = reading(text, line.number, line.text[:_LONGEST_SHOWN])
        known = numbers.get(name)
        if known is None or keep == "last" or (keep == "exact" and number.width < known.width):
            numbers[name] = number
        elif keep == "sum":
            numbers[name] = known.plus(number)


def arguments_of(text: str) -> Iterator[tuple[str, str]]:
    """The outermost `name=value` or `'name': value` pairs of arguments printed by Python, in order.

    What stands in brackets belongs to the value, as text: a draft model's `model=` is not the model's.
    """
    depth, quote, start = 0, "", 0
    text = text.strip().removeprefix("{")
    for at, char in enumerate(f"{text},"):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth <= 0:
            pair = re.match(r"\s*['\"]?(\w+)['\"]?\s*[=:]\s*(.*)", text[start:at], re.DOTALL)
            if pair is not None:
                yield pair[1], pair[2].rstrip(" )}")
            start = at + 1


def value_of(text: str) -> Any:
    """The Python value that `text` prints, or the text itself: `8192`, `'auto'`, `None`, `torch.bfloat16`."""
    if _SCALAR.fullmatch(text):
        return ast.literal_eval(text)
    return text.removeprefix("torch.").strip("'\"")


@cache
def argument_names(engine: str) -> dict[str, str]:
    """An engine's names of its arguments, as its log echoes them, to kvsim's names of settings."""
    tables = json.loads((Path(__file__).parent / "data" / "settings.json").read_bytes())
    names: dict[str, str] = tables["engines"][engine]["names"]
    return names


ANY_ENGINE = (
    rule("GPU 0: ", r"\bGPU 0: (?P<gpu>[A-Z][\w .-]*\w)"),  # nvidia-smi -L, and what bug reports collect
    rule("|   0  NVIDIA", r"^\|\s+0\s+(?P<gpu>NVIDIA [\w .-]*?\w)\s{2,}"),  # nvidia-smi's table
    rule(
        "out of memory",
        r"(?:CUDA|HIP) (?:error: )?out of memory|CUDA runtime error.*out of memory",
        reason_class="oom",
    ),
    rule("Tried to allocate", rf"Tried to allocate (?P<oom_asked_gib>{SIZE})"),
    rule("total capacity", rf"total capacity of (?P<total_gib>{SIZE}) of which (?P<oom_free_gib>{SIZE}) is free"),
    # torch before 2.2: "(GPU 0; 23.69 GiB total capacity; 21.10 GiB already allocated; 512.00 MiB free; ..."
    rule("total capacity", rf"; (?P<total_gib>{SIZE}) total capacity;.*?; (?P<oom_free_gib>{SIZE}) free;"),
    rule(
        "divisible by",
        r"heads \(\d+\) must be divisible by tensor parallel size|AssertionError: \d+ is not divisible by \d+",
        reason_class="tensor_parallel",
    ),
    rule("Application startup complete", r"Application startup complete", ready=True),
)
"""Lines that say the same whichever engine runs; they tell nothing about which."""
