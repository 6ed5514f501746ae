"""Generated traffic, from the keys that say it."""

from kvsim.request import PS_PER_S
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.generated.arrivals import PRESETS, ArrivalSettings
from kvsim.scenario.schema.generated.lengths import LengthSettings
from kvsim.scenario.schema.generated.sessions import AgentSettings, SessionSettings, ThinkSettings
from kvsim.scenario.schema.traffic import TimesOutput, WorkloadSettings
from kvsim.workload.arrivals import ARRIVALS, ArrivalProcess, Mmpp
from kvsim.workload.arrivals.modulated.stages import mean_rate
from kvsim.workload.clients.limits import max_tokens_rule
from kvsim.workload.clients.tags import Tags
from kvsim.workload.layers import Shared
from kvsim.workload.layers.benchmarks import FORMS
from kvsim.workload.lengths import JointRows, LengthDistribution, law_of
from kvsim.workload.presets.arrivals import preset_arrivals
from kvsim.workload.sessions.history import HISTORIES
from kvsim.workload.sessions.laws import ONE, Agents, ClientLoop, OnFailure, SessionLaws
from kvsim.workload.sessions.loop import SessionTraffic
from kvsim.workload.stream import GeneratedTraffic
from kvsim.workload.streams import Streams
from kvsim.workload.trace import TraceTraffic


def generated(scenario: Scenario) -> GeneratedTraffic | SessionTraffic:
    """The traffic of a checked scenario without a trace. ValueError naming the argument that does not go."""
    workload = scenario.settings.workload
    if workload.sessions is not None or workload.clients is not None:
        return _in_sessions(workload)
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


def number_or_law(value: int | LengthSettings) -> int | LengthDistribution:
    """A number as it is, a distribution as its law."""
    return value if isinstance(value, int) else lengths(value)


def layers(workload: WorkloadSettings) -> list[Shared]:
    """What prompts share, outermost first; nothing where the scenario says nothing."""
    if workload.prefix is not None:
        prefix = workload.prefix
        return [Shared(name="system", tokens=prefix.tokens, texts=prefix.groups, theta=prefix.theta)]
    if workload.dataset is not None:
        return [FORMS[workload.dataset.name](**workload.dataset.parameters).layer]
    return [
        Shared(
            name=layer.name,
            tokens=number_or_law(layer.tokens),
            texts=layer.texts,
            theta=layer.theta,
            count=number_or_law(layer.count),
            pick=layer.pick,
            order=layer.order,
            each=layer.each,
        )
        for layer in workload.layers or ()
    ]


def _in_sessions(workload: WorkloadSettings) -> SessionTraffic:
    settings, clients = workload.sessions or SessionSettings(), workload.clients
    assert workload.prompt_tokens is not None
    assert workload.output_tokens is not None
    think = settings.think or (clients.think if clients is not None else None)
    failure = settings.on_failure
    laws = SessionLaws(
        prompt_tokens=lengths(workload.prompt_tokens),
        output_tokens=lengths(workload.output_tokens),
        turns=ONE if settings.turns is None else lengths(settings.turns),
        new_tokens=None if settings.new_tokens is None else lengths(settings.new_tokens),
        think_ms=think_law(think),
        history=HISTORIES[settings.history.keep](**settings.history.parameters),
        agents=None if settings.agents is None else _agents(settings.agents),
        on_failure=OnFailure(then=failure.then, back_off_s=failure.back_off / PS_PER_S, retries=failure.retries),
    )
    if clients is not None:
        loop = ClientLoop(clients=clients.count, ramp_s=clients.ramp / PS_PER_S)
        return SessionTraffic(laws, clients=loop, requests=workload.requests)
    assert workload.arrivals is not None
    begin = arrivals(workload.arrivals, workload.rate)
    return SessionTraffic(laws, arrivals=begin, closed=settings.loop == "closed", requests=workload.requests)


def think_law(think: ThinkSettings | None) -> LengthDistribution | None:
    """The law of pauses in milliseconds; None: there are none."""
    law = None if think is None else think.law
    return None if law is None else law_of(law)


def _agents(settings: AgentSettings) -> Agents:
    return Agents(
        share=settings.share,
        count=ONE if settings.count is None else lengths(settings.count),
        turns=ONE if settings.turns is None else lengths(settings.turns),
        relation=settings.relation,
        join=settings.join,
    )


def kinds_of_client(workload: WorkloadSettings) -> list[Tags]:
    """The kinds of client that there are; none where the scenario tells none apart."""
    return [
        Tags(
            weight=tags.weight,
            tenant=tags.tenant,
            priority=tags.priority,
            slo_class=tags.slo_class,
            max_tokens=None if tags.max_tokens is None else max_tokens_rule(limit(tags.max_tokens)),
        )
        for tags in workload.mix or ()
    ]


def limit(max_tokens: int | str | TimesOutput) -> int | str | dict[str, float]:
    """What the client allows, as `kvsim.workload.clients.limits.max_tokens_rule` reads it."""
    return {"times_output": max_tokens.times_output} if isinstance(max_tokens, TimesOutput) else max_tokens
