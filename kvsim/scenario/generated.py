"""Generated traffic, from the keys that say it."""

from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.generated.arrivals import PRESETS, ArrivalSettings
from kvsim.scenario.schema.generated.lengths import LengthSettings
from kvsim.workload.arrivals import ARRIVALS, ArrivalProcess, Mmpp
from kvsim.workload.arrivals.modulated.stages import mean_rate
from kvsim.workload.lengths import JointRows, LengthDistribution, law_of
from kvsim.workload.presets.arrivals import preset_arrivals
from kvsim.workload.stream import GeneratedTraffic
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic


def generated(scenario: Scenario) -> GeneratedTraffic:
    """The traffic of a checked scenario without a trace. ValueError naming the argument that does not go."""
    workload = scenario.settings.workload
    # The scenario was checked: there are arrivals, with a rate, and lengths of one kind or the other.
    assert workload.arrivals is not None
    if scenario.lengths_of is not None:
        rows = TraceTraffic(scenario.lengths_of, on_bad_row="drop", sort=True).rows(Streams(0))
        joint = JointRows(((prompt, output) for _, prompt, output in rows), name=scenario.lengths_of)
        return GeneratedTraffic(
            arrivals=arrivals(workload.arrivals, workload.rate), joint=joint, requests=workload.requests
        )
    assert workload.prompt_tokens is not None
    assert workload.output_tokens is not None
    return GeneratedTraffic(
        arrivals=arrivals(workload.arrivals, workload.rate),
        prompt_tokens=lengths(workload.prompt_tokens),
        output_tokens=lengths(workload.output_tokens),
        requests=workload.requests,
    )


def arrivals(settings: ArrivalSettings, rate: float | None) -> ArrivalProcess:
    """The process, at `rate` or at the rate that it brings along."""
    parameters = settings.parameters
    if settings.process in PRESETS:
        return preset_arrivals(settings.process, rate, **parameters)
    if rate is None:
        if settings.process == "stages":
            rate = mean_rate(parameters["stages"])
        else:
            rate = Mmpp(rate=1.0, **parameters).own_rate
    return ARRIVALS[settings.process](rate=rate, **parameters)


def lengths(settings: LengthSettings) -> LengthDistribution:
    """The law of a length distribution."""
    return law_of(settings.parameters)
