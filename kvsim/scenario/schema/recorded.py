"""What a scenario says of a trace: its format, what its file cannot say of itself, and what becomes of it."""

from typing import Annotated, Literal

from pydantic import Field

from kvsim.scenario.schema.fields import Count, Duration, Part, Positive, Share, Timespan

Format = Literal[
    "azure",
    "burstgpt",
    "vidur",
    "lengths",
    "splitwise",
    "blis",
    "recorded-run",
    "mooncake",
    "bailian",
    "servegen-offline",
    "llmservingsim",
    "dynamo",
    "dynamo-agentic",
    "weka",
    "copilot",
    "tracelab",
    "applied-compute",
    "serving-benchmark",
    "aiperf-records",
    "guidellm",
    "otel",
    "sharegpt",
    "aiperf-turns",
    "aiperf-single-turn",
    "vllm-custom",
    "openai-batch",
    "table",
]
"""Names of trace readers."""


class ReadSettings(Part):
    """What the file of a trace cannot say of itself; also of that of `lengths_of`."""

    block_tokens: Count | None = None
    """Tokens of a block of ids; absent: as the file or its format says."""
    prompts: Literal["whole", "delta"] = "whole"
    """Whether a session's rows tell whole prompts, or what each adds."""
    chars_per_token: Positive | None = None
    """Of a trace of texts: characters a token has."""
    tokenizer: Annotated[str, Field(pattern=r"^[^:]+:[^:]+$")] | None = None
    """Of a trace of texts, in place of that: a Python function from a text to its tokens, as MODULE:FUNCTION."""
    output_tokens: Count | None = None
    """Of a trace without outputs: how long they are."""
    columns: dict[
        Literal["time", "prompt", "output", "session", "hash_ids", "priority", "tenant"],
        Annotated[str, Field(min_length=1)],
    ] = Field(default_factory=dict)
    """Of a table of other columns: which column is what."""
    time_unit: Literal["s", "ms", "us", "ns"] = "s"
    """Of a table: the unit of its times."""
    answers: Literal["unlike", "repeated"] = "unlike"
    """Of sessions whose prompts are told by ids of blocks, which name no outputs: `repeated` takes the answer to a call
    to be what its session's next prompt has behind the prompt before, so that it is found again there."""
    shared_system: bool = False
    """Of weka sessions: invents that those of equal tools and system prompts begin alike."""


class ReshapeSettings(Part):
    """Other traffic made of the same, in this order: a window, a sample, other lengths, repetitions."""

    start: Duration = 0
    """Requests before this moment are left out, and the others come that much earlier; by session: sessions that begin
    before it."""
    until: Timespan | None = None
    """Requests from this moment on are left out; by session: sessions that begin from it on."""
    share: Share = 1.0
    """The share of the requests, or sessions, that is kept, drawn one by one: the rate falls by count, where
    `workload.rate` and `rate_times` change it by stretching time."""
    by: Literal["request", "session"] | None = None
    """What is kept or left out as a whole; absent: sessions beside `workload.sessions`, else requests."""
    prompt_times: Positive = 1.0
    """How many times as long prompts become."""
    output_times: Positive = 1.0
    """How many times as long outputs become."""
    rate_times: Positive = 1.0
    """How many times as high the rate becomes, by a time warp: gaps between requests become that much shorter, in a
    closed loop those between the beginnings of sessions alone."""
    repeat: Count = 1
    """How often all of it comes, one after the other."""
