"""Recorded traffic, from the keys that say it."""

from typing import TYPE_CHECKING

from kvsim.request import PS_PER_S
from kvsim.scenario.generated import arrivals, think_law
from kvsim.scenario.resolve import Scenario
from kvsim.scenario.schema.generated.sessions import SessionSettings
from kvsim.scenario.schema.traffic import WorkloadSettings
from kvsim.workload.readers.options import ReadOptions, tokenizer_of
from kvsim.workload.reshape import Reshape, Reshaped
from kvsim.workload.sessions.laws import ClientLoop, OnFailure
from kvsim.workload.stream import LoopTraffic, Traffic
from kvsim.workload.trace import TraceTraffic

if TYPE_CHECKING:
    from kvsim.workload.replayed.traffic import ReplayTraffic


def traced(scenario: Scenario, trace: str, *, identities: bool) -> "TraceTraffic | ReplayTraffic":
    """The traffic of a trace: row by row at its times, or in its sessions where these are asked for."""
    workload = scenario.settings.workload
    by_session = workload.reshape is not None and workload.reshape.by == "session"
    if workload.sessions is not None or workload.clients is not None or by_session:
        return _in_sessions(workload, trace, identities=identities)
    return TraceTraffic(
        trace,
        format=_format(workload),
        on_bad_row=workload.on_bad_row,
        sort=workload.sort,
        requests=workload.requests,
        rate=workload.rate,
        options=read_options(workload),
        identities=identities,
    )


def _in_sessions(workload: WorkloadSettings, trace: str, *, identities: bool) -> "ReplayTraffic":
    from kvsim.workload.replayed.traffic import ReplayTraffic
    from kvsim.workload.replayed.waits import ThinkBounds

    # Sampled sessions alone are no reason to wait for answers.
    settings = workload.sessions or SessionSettings(loop="closed" if workload.clients is not None else "open")
    clients, think, failure = workload.clients, settings.think, settings.on_failure
    recorded = think is None or think.distribution == "recorded"
    bounds = ThinkBounds()
    if think is not None and recorded:
        bounds = ThinkBounds(least_ps=think.min or 0, most_ps=think.max)
    elif think is not None and think.law is None:
        bounds = ThinkBounds(most_ps=0)
    process = None
    if workload.arrivals is not None:
        process = arrivals(workload.arrivals, workload.rate)
    return ReplayTraffic(
        trace,
        loop=settings.loop,
        format=_format(workload),
        on_bad_row=workload.on_bad_row,
        requests=workload.requests,
        rate=workload.rate if process is None else None,
        arrivals=process,
        clients=None if clients is None else ClientLoop(clients=clients.count, ramp_s=clients.ramp / PS_PER_S),
        rest_ms=None if clients is None else think_law(clients.think),
        think_ms=None if recorded else think_law(think),
        bounds=bounds,
        on_failure=OnFailure(then=failure.then, back_off_s=failure.back_off / PS_PER_S, retries=failure.retries),
        reshape=reshape_of(workload),
        answers="unlike" if workload.read is None else workload.read.answers,
        options=read_options(workload),
        identities=identities,
    )


def read_options(workload: WorkloadSettings) -> ReadOptions | None:
    """What the scenario says of the file; ValueError where that does not go together."""
    read = workload.read
    if read is None:
        return None
    return ReadOptions(
        block_tokens=read.block_tokens,
        prompts=read.prompts,
        chars_per_token=read.chars_per_token,
        tokenizer=None if read.tokenizer is None else tokenizer_of(read.tokenizer),
        output_tokens=read.output_tokens,
        columns={str(name): column for name, column in read.columns.items()},
        time_unit=read.time_unit,
        shared_system=read.shared_system,
    )


def reshape_of(workload: WorkloadSettings) -> Reshape | None:
    """What the scenario makes of its traffic; None: nothing."""
    reshape = workload.reshape
    if reshape is None:
        return None
    return Reshape(
        from_s=reshape.start / PS_PER_S,
        until_s=None if reshape.until is None else reshape.until / PS_PER_S,
        share=reshape.share,
        prompt_times=reshape.prompt_times,
        output_times=reshape.output_times,
        rate_times=reshape.rate_times,
        repeat=reshape.repeat,
    )


def reshaped(workload: WorkloadSettings, traffic: Traffic | LoopTraffic) -> Traffic | LoopTraffic:
    """The traffic, or what the scenario makes of it."""
    shape = reshape_of(workload)
    # Those in sessions are reshaped session by session, where they are chosen.
    return traffic if shape is None or isinstance(traffic, LoopTraffic) else Reshaped(traffic, shape)


def _format(workload: WorkloadSettings) -> str | None:
    """A table whose columns are told is one, whatever else it might be."""
    named = workload.read is not None and workload.read.columns
    return "table" if workload.format is None and named else workload.format
