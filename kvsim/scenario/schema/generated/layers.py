"""Texts that prompts share, in a scenario."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from kvsim.scenario.schema.fields import Count, Part
from kvsim.scenario.schema.generated.lengths import LengthSettings

Texts = Annotated[int, Field(ge=1, le=1_000_000)]


def _kind(value: object) -> str:
    return "law" if isinstance(value, dict | LengthSettings) else "number"


NumberOrLaw = Annotated[
    Annotated[Count, Tag("number")] | Annotated[LengthSettings, Tag("law")],
    Discriminator(_kind),
]
"""A number, or a length distribution."""


class PrefixSettings(Part):
    """A system prompt at the start of every prompt, one of several; what follows it is like no other request's."""

    tokens: Count
    """Tokens of each system prompt. `workload.prompt_tokens` includes them, and is at least one more."""
    groups: Texts = 1
    """How many different system prompts there are."""
    theta: Annotated[float, Field(ge=0)] = 0.0
    """How unevenly they are used: the k-th has weight k^-theta (Zipf's law); 0: evenly."""


class LayerSettings(Part):
    """A layer of texts that prompts share; layers stand in the prompt in the order of the list."""

    name: Annotated[str, Field(min_length=1)]
    """What figures and tables call it: system, tenant, template, documents, examples, or any other word."""
    tokens: NumberOrLaw
    """Tokens of each text: a number, or a distribution from which each text has its length once."""
    texts: Texts = 1
    """How many different texts there are."""
    theta: Annotated[float, Field(ge=0)] = 0.0
    """How unevenly they are used: the k-th has weight k^-theta (Zipf's law); 0: evenly."""
    count: NumberOrLaw = 1
    """How many different ones a prompt has: a number, or a distribution."""
    pick: Literal["drawn", "in-turn"] = "drawn"
    """Whether a prompt's texts are drawn, or all of them are used by turns."""
    order: Literal["drawn", "fixed"] = "drawn"
    """The order of several texts: as drawn, or always that of their numbers, so that equal sets begin alike."""
    each: Literal["session", "turn"] = "session"
    """Whether a session keeps the texts of its first prompt, or every turn brings its own behind the history."""

    @model_validator(mode="after")
    def _goes_together(self) -> "LayerSettings":
        if isinstance(self.count, int) and self.count > self.texts:
            raise ValueError(
                f"count is {self.count}, but there are {self.texts} texts; give texts: {self.count} or more"
            )
        return self


class DatasetSettings(Part):
    """Shared prefixes as a load generator's own options say them; lengths, groups and numbers follow from it."""

    name: Literal["prefix_repetition", "generated-shared-prefix", "shared_prefix"]
    """vLLM's prefix_repetition, SGLang's generated-shared-prefix, or inference-perf's shared_prefix."""
    prefix_len: Count | None = None
    """prefix_repetition: tokens of each prefix; absent: 256."""
    suffix_len: Count | None = None
    """prefix_repetition: tokens behind it; absent: 256."""
    num_prefixes: Texts | None = None
    """prefix_repetition: how many prefixes; absent: 10."""
    num_groups: Texts | None = None
    """The others: how many system prompts; absent: 64 of SGLang, 10 of inference-perf."""
    prompts_per_group: Count | None = None
    """generated-shared-prefix: requests of each group; absent: 16."""
    num_prompts_per_group: Count | None = None
    """shared_prefix: requests of each group; absent: 10."""
    system_prompt_len: Count | None = None
    """The others: tokens of each system prompt; absent: 2048 of SGLang, 100 of inference-perf."""
    question_len: Count | None = None
    """The others: tokens behind it; absent: 128 of SGLang, 50 of inference-perf."""
    output_len: Count | None = None
    """Output tokens; absent: 128, 256, 50."""

    @property
    def parameters(self) -> dict[str, int]:
        """The options that were given, as keyword arguments of the form."""
        return self.model_dump(exclude={"name"}, exclude_none=True)
