"""What a reader of a run should know that only the run itself has shown."""

from collections.abc import Mapping, Sequence

from kvsim.metrics.summary import Run
from kvsim.request import PS_PER_S
from kvsim.scenario.build import Simulation
from kvsim.scenario.resolve import Scenario
from kvsim.timing.fitted import HERE
from kvsim.workload.readers.interface import Surveyed
from kvsim.workload.sessions.drive import LoopTraffic
from kvsim.workload.stream import GeneratedTraffic

FALLS_BEHIND = 0.1
"""An engine keeps up if, once nobody arrives any more, it is done within this share of the time that arrivals took."""

_TOLD = 5
"""Of times that something happened so many are told at most."""

_FEW = 0.01
"""The share of lengths outside their bounds from which on a run says so."""


def notes_of(scenario: Scenario, simulation: Simulation, outcome: Run) -> list[str]:
    """Sentences on the scenario, its trace, the lengths that were drawn, and whether the engine kept up."""
    return [
        *simulation.notes,
        *_of_trace(scenario, simulation),
        *_emptied(outcome.flushes),
        *_outside(simulation),
        *_falls_behind(simulation, outcome),
        *_left_range(outcome.left_range),
    ]


LEFT_RANGE = "Step times leave the range that they were fitted to: "
"""How a note begins that says so: one for each quantity, as several runs share some of them."""


def left_range_together(told: Mapping[str, Sequence[str]]) -> list[str]:
    """Such notes of several runs, by their names: each range once, with what the runs have, and which of them."""
    said: dict[str, dict[str, list[str]]] = {}
    for name, notes in told.items():
        for note in notes:
            fitted, _, there = note.removesuffix(".").partition(HERE)
            said.setdefault(fitted, {}).setdefault(there, []).append(name)

    def whose(there: str, names: Sequence[str]) -> str:
        return there if len(names) == len(told) else f"{there} ({', '.join(names)})"

    return [f"{fitted}{HERE}{', '.join(whose(*one) for one in those.items())}." for fitted, those in said.items()]


def _left_range(outside: Sequence[str]) -> list[str]:
    """Notes that say what of the run lies outside the range that step times were fitted to."""
    return [f"{LEFT_RANGE}{one}." for one in outside]


def _of_trace(scenario: Scenario, simulation: Simulation) -> list[str]:
    """Notes that say how many rows of a trace were left out, and why, and what the others say that is not used."""
    traffic = simulation.traffic
    if not isinstance(traffic, Surveyed):
        return []
    said = []
    # Rows may be no requests without being bad, such as failed calls; those of a run that broke off are not told.
    asked = scenario.settings.workload.on_bad_row == "drop"
    report = traffic.survey() if asked else traffic.report
    if report is not None and report.dropped:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(report.dropped.items()))
        said.append(f"{sum(report.dropped.values())} of {report.rows_read} rows of the trace were dropped ({reasons}).")
    caches, told = simulation.scheduler.allocator.caches, traffic.prefix_identity == "real"
    if told and not caches:
        said.append(
            "The trace says which prompts begin alike, and this run does not use it: every prompt is computed whole. "
            "`kvsim hit-curve` counts what is shared."
        )
    elif told and traffic.block_tokens is None:
        said.append(
            "The trace tells what each turn adds to its session: prompts begin with so much of its history, answers "
            "included; what sessions share with each other is not told."
        )
    elif told:
        output = ", or with an earlier output,"
        if isinstance(traffic, LoopTraffic) and traffic.told_answers:
            output = ""
            said.append(
                f"The answers to {traffic.told_answers} of {traffic.survey().rows_kept} calls are taken to be what the "
                "next prompts of their sessions have behind the prompts before."
            )
        said.append(
            f"The trace tells its prompts apart in blocks of {traffic.block_tokens} tokens: what they share "
            f"beyond the last equal block{output} counts as unlike."
        )
    elif caches:
        said.append("The trace does not say which prompts begin alike: a request finds only blocks of its own again.")
    if traffic.ignores_sessions:
        said.append(
            "The trace records sessions, and this run sends every call at its recorded time. workload.sessions: {loop: "
            "closed} waits for the answers, and takes tenants, classes and cancellations along."
        )
    elif traffic.ignores_tags:
        said.append(
            "The trace tells tenants or priorities, and this run leaves them out. workload.sessions: {loop: open} "
            "takes them along, at the recorded times."
        )
    if traffic.stands_alone:
        said.append("The trace records no sessions: every request stands alone, and none waits for another.")
    return said


def _emptied(flushes: Sequence[tuple[int, int | None]]) -> list[str]:
    """Notes that say when the prefix cache was emptied, and when it was to be and was not."""
    done = [(asked, when) for asked, when in flushes if when is not None]
    said = []
    if done:
        times = [
            f"{when / PS_PER_S:,.3f} s" + (f" (asked for at {asked / PS_PER_S:,.3f} s)" if when > asked else "")
            for asked, when in done
        ]
        said.append(f"The prefix cache was emptied at {_some(times)}.")
    refused = [f"{asked / PS_PER_S:,.3f} s" for asked, when in flushes if when is None]
    if refused:
        said.append(f"The engine did not empty its prefix cache at {_some(refused)}: requests were using it.")
    return said


def _some(times: Sequence[str]) -> str:
    more = f" and {len(times) - _TOLD} times more" if len(times) > _TOLD else ""
    return ", ".join(times[:_TOLD]) + more


def _outside(simulation: Simulation) -> list[str]:
    """Notes that say how many of the lengths drawn did not lie within their bounds, where it was more than a few."""
    traffic = simulation.traffic
    if not isinstance(traffic, GeneratedTraffic):
        return []
    done = {"clip": "were put on them", "redraw": "were drawn again"}
    return [
        f"{tally.outside / tally.drawn:.1%} of the {kind} lengths drawn lay outside their bounds and "
        f"{done[traffic.policy(kind)]}."
        for kind, tally in traffic.outside.items()
        if tally.outside > _FEW * tally.drawn
    ]


def _falls_behind(simulation: Simulation, outcome: Run) -> list[str]:
    """A note that says plainly when an engine that keeps nothing cannot keep up with its traffic."""
    arrivals_ps, late_ps = outcome.last_arrival_ps, outcome.end_ps - outcome.last_arrival_ps
    if simulation.scheduler.allocator.keeps or late_ps <= FALLS_BEHIND * arrivals_ps:
        return []
    marks = outcome.requests.marks()
    asked, emitted = len(marks), sum(marks.finished_in([(0, arrivals_ps)]))
    return [
        f"Without a cache the engine does not keep up with this traffic: when the last request arrived, after "
        f"{arrivals_ps / PS_PER_S:,.0f} s, {emitted} of {asked} had finished; the rest took "
        f"{late_ps / PS_PER_S:,.0f} s more."
    ]
