"""What a reader of a run should know that only the run itself has shown."""

from kvsim.metrics.summary import Run
from kvsim.request import PS_PER_S
from kvsim.scenario.build import Simulation
from kvsim.scenario.resolve import Scenario
from kvsim.workload.stream import GeneratedTraffic
from kvsim.workload.trace import TraceTraffic

FALLS_BEHIND = 0.1
"""An engine keeps up if, once nobody arrives any more, it is done within this share of the time that arrivals took."""

_FEW = 0.01
"""The share of lengths outside their bounds from which on a run says so."""


def notes_of(scenario: Scenario, simulation: Simulation, outcome: Run) -> list[str]:
    """Sentences on the scenario, its trace, the lengths that were drawn, and whether the engine kept up."""
    return [
        *simulation.notes,
        *_of_trace(scenario, simulation),
        *_outside(simulation),
        *_falls_behind(simulation, outcome),
    ]


def _of_trace(scenario: Scenario, simulation: Simulation) -> list[str]:
    """Notes that say how many rows of a trace were left out, and why, and what the others say that is not used."""
    if not isinstance(simulation.traffic, TraceTraffic):
        return []
    said = []
    # Rows may be no requests without being bad, such as failed calls; those of a run that broke off are not told.
    asked = scenario.settings.workload.on_bad_row == "drop"
    report = simulation.traffic.survey() if asked else simulation.traffic.report
    if report is not None and report.dropped:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(report.dropped.items()))
        said.append(f"{sum(report.dropped.values())} of {report.rows_read} rows of the trace were dropped ({reasons}).")
    caches, told = simulation.scheduler.allocator.caches, simulation.traffic.prefix_identity == "real"
    if told and not caches:
        said.append(
            "The trace says which prompts begin alike, and this run does not use it: every prompt is computed whole. "
            "`kvsim hit-curve` counts what is shared."
        )
    elif told:
        said.append(
            f"The trace tells its prompts apart in blocks of {simulation.traffic.block_tokens} tokens: what they share "
            "beyond the last equal block, or with an earlier output, counts as unlike."
        )
    elif caches:
        said.append("The trace does not say which prompts begin alike: a request finds only blocks of its own again.")
    return said


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
