"""The comment at the head of a scenario: its question, what it shows, what to expect, and the form of the answer.

# Question: how large should a block be?
# Shows:    one model on one card ...
# Expect:   the last block of a request is half empty in the mean ...
# Answer:   blocks of 16 waste {16: waste_share %} of what they occupy, blocks of 256 {256: waste_share %}.
"""

import re
from dataclasses import dataclass

PARTS = ("question", "shows", "expect", "answer")

_PART = re.compile(r"(\w+):\s+(.*)")


@dataclass(frozen=True)
class Question:
    """The parts of the comment as running text, each empty where it is not there.

    `answer` is a form whose numbers stand in braces (`kvsim.reporting.question.answer`), so that what is said of a run
    is what the run gave.
    """

    question: str = ""
    shows: str = ""
    expect: str = ""
    answer: str = ""


def question_of(text: str) -> Question:
    """Read the comment with which a scenario's text begins; every part is empty where there is none."""
    parts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        said = line[1:].strip()
        begins = _PART.match(said)
        if begins and begins[1].lower() in PARTS:
            current = parts.setdefault(begins[1].lower(), [])
            said = begins[2]
        if current is not None:
            current.append(said)
    return Question(**{name: _sentence(" ".join(lines)) for name, lines in parts.items()})


def _sentence(text: str) -> str:
    """With a capital first letter, as a paragraph of its own begins."""
    return text[:1].upper() + text[1:]
