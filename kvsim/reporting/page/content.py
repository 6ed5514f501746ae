"""What a page says, put together once, for its HTML and its Markdown form alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.reporting.finding import finding, ledger, legend, measured, shared, shared_notes, sources
from kvsim.reporting.inputs import Subject
from kvsim.reporting.inputs.exhibit import Exhibit
from kvsim.reporting.inputs.sheet import Sheet
from kvsim.reporting.page.cards import Card, Part, cards, first_token_parts
from kvsim.reporting.page.sheets import (
    comparison_sheet,
    glance_sheet,
    intervals_sheet,
    requests_sheet,
    settings_sheet,
    tenants_sheet,
)
from kvsim.reporting.question.answer import answered
from kvsim.reporting.question.header import question_of
from kvsim.reporting.question.numbers import numbers_of_results
from kvsim.reporting.study.table import in_short
from kvsim.version import __version__


@dataclass(frozen=True, kw_only=True)
class Content:
    """Everything that a page says in words and tables; figures and maps come beside it."""

    name: str
    kind: str
    version: str
    description: str = ""
    findings: Sequence[str] = ()
    cards: Sequence[Card] = ()
    first_token: Sequence[tuple[str, list[Part]]] = ()
    glance: Sheet | None = None
    intervals: Sheet | None = None
    numbers: Sheet | None = None
    requests: Sheet | None = None
    tenants: Sheet | None = None
    settings: Sheet | None = None
    given: Sequence[tuple[str, str]] = ()
    legend: Sequence[str] = ()
    notes: Sequence[str] = ()
    provenance: Sequence[str] = ()
    not_modelled: Sequence[str] = ()
    exhibits: Sequence[Exhibit] = ()
    facts: Sequence[tuple[str, str]] = ()


def content_of(subject: Subject) -> Content:
    """What there is to say about a subject. A subject without results says what its exhibits do."""
    results = list(subject.results)
    exhibits = subject.exhibits
    notes = [note for exhibit in exhibits for note in exhibit.notes]
    gaps = [gap for exhibit in exhibits for gap in exhibit.not_modelled]
    found = [text for exhibit in exhibits for text in exhibit.findings]
    origins = [line for exhibit in exhibits for line in exhibit.provenance]
    if not results:
        kinds = " and ".join(dict.fromkeys(exhibit.kind for exhibit in exhibits))
        return Content(
            name=subject.name,
            kind=kinds,
            version=__version__,
            findings=found,
            notes=notes,
            provenance=origins,
            not_modelled=gaps,
            exhibits=exhibits,
        )
    study = subject.study
    several = len(results) > 1
    first = f"of the first of {study.samples:,} replications" if study and study.method == "replications" else ""
    return Content(
        name=subject.name,
        kind="a study of variants" if study else "a comparison" if several else "one run",
        version=results[0].version,
        description=_description(results[0].scenario_resolved) or question_of(results[0].scenario_given).question,
        findings=[*_answer(results), finding(results), *(in_short(study) if study else ()), *found],
        cards=cards(results),
        first_token=first_token_parts(results),
        glance=glance_sheet(results, of=first) if several else None,
        intervals=intervals_sheet(study) if study else None,
        numbers=comparison_sheet(results),
        requests=requests_sheet(results),
        tenants=tenants_sheet(results),
        settings=settings_sheet(results),
        given=_given([(result.name, result.scenario_given) for result in results]),
        legend=[*legend(results), *shared([measured(result) for result in results], results)],
        notes=[
            *([f"Figures, cards and tables are {first}; intervals, differences and verdicts of all."] if first else []),
            *(study.notes if study else ()),
            *shared_notes(results),
            *notes,
        ],
        provenance=[
            *shared([sources(result) for result in results], results),
            *shared([ledger(result) for result in results], results),
            *origins,
        ],
        not_modelled=[*shared([result.not_modelled for result in results], results), *gaps],
        exhibits=exhibits,
        facts=_facts(subject),
    )


def _answer(results: Sequence[Result]) -> list[str]:
    """What the head of the scenario answers with these numbers; nothing where it asks for others."""
    form = question_of(results[0].scenario_given).answer
    try:
        return [answered(form, numbers_of_results(results))] if form else []
    except InputError:
        return []


def _description(resolved: dict[str, Any]) -> str:
    return str(resolved.get("description", {}).get("value") or "")


def _given(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each text once, with the results that it is of."""
    names: dict[str, list[str]] = {}
    for name, text in texts:
        names.setdefault(text, []).append(name)
    return [(", ".join(of) if len(names) > 1 else "", text) for text, of in names.items()]


_SHOWN = (
    ("model", "model.name"),
    ("GPU", "gpu"),
    ("engine", "engine.profile"),
    ("allocator", "allocator.name"),
    ("traffic", "workload.trace"),
)
"""What the head of a page names, and the setting it is."""


def _facts(subject: Subject) -> list[tuple[str, str]]:
    facts = []
    for label, key in _SHOWN:
        values = [result.scenario_resolved.get(key, {}).get("value") for result in subject.results]
        told = dict.fromkeys(str(value) for value in values if value is not None)
        if told:
            facts.append((label, ", ".join(told)))
    seeds = dict.fromkeys(str(result.seed) for result in subject.results)
    return [*facts, ("seed", ", ".join(seeds))]
