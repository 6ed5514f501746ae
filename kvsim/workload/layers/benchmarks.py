"""The forms in which load generators write shared prefixes, as layers and lengths.

vLLM's `prefix_repetition`, SGLang's generated-shared-prefix and inference-perf's `shared_prefix` say the same thing in
other words: some prefixes, so many tokens each, and prompts that go on like no other.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kvsim.workload.arguments import check_whole
from kvsim.workload.layers.shared import Shared


class SharedPrefixes(NamedTuple):
    """What all three say: `layer` is the prefixes; prompts are `prompt_tokens` long, prefix included."""

    layer: Shared
    prompt_tokens: int
    output_tokens: int
    requests: int | None
    """How many requests there are in all; None: the form does not say."""


def prefix_repetition(
    *, prefix_len: int = 256, suffix_len: int = 256, num_prefixes: int = 10, output_len: int = 128
) -> SharedPrefixes:
    """`vllm bench serve --dataset-name prefix_repetition`: every prefix equally often, with a suffix of its own."""
    _check(prefix_len=prefix_len, suffix_len=suffix_len, num_prefixes=num_prefixes, output_len=output_len)
    layer = Shared(name="group", tokens=prefix_len, texts=num_prefixes, pick="in-turn")
    return SharedPrefixes(layer, prefix_len + suffix_len, output_len, None)


def generated_shared_prefix(
    *,
    num_groups: int = 64,
    prompts_per_group: int = 16,
    system_prompt_len: int = 2048,
    question_len: int = 128,
    output_len: int = 256,
) -> SharedPrefixes:
    """`sglang.bench_serving --dataset-name generated-shared-prefix`: groups of questions behind one system prompt.

    Groups are drawn evenly, as the shuffled requests of that benchmark come.
    """
    _check(num_groups=num_groups, prompts_per_group=prompts_per_group, system_prompt_len=system_prompt_len)
    _check(question_len=question_len, output_len=output_len)
    layer = Shared(name="group", tokens=system_prompt_len, texts=num_groups)
    return SharedPrefixes(layer, system_prompt_len + question_len, output_len, num_groups * prompts_per_group)


def shared_prefix(
    *,
    num_groups: int = 10,
    num_prompts_per_group: int = 10,
    system_prompt_len: int = 100,
    question_len: int = 50,
    output_len: int = 50,
) -> SharedPrefixes:
    """inference-perf's `data: {type: shared_prefix}`; defaults are those of its documentation."""
    _check(num_groups=num_groups, num_prompts_per_group=num_prompts_per_group, system_prompt_len=system_prompt_len)
    _check(question_len=question_len, output_len=output_len)
    layer = Shared(name="group", tokens=system_prompt_len, texts=num_groups)
    return SharedPrefixes(layer, system_prompt_len + question_len, output_len, num_groups * num_prompts_per_group)


FORMS: Mapping[str, Callable[..., SharedPrefixes]] = {
    "prefix_repetition": prefix_repetition,
    "generated-shared-prefix": generated_shared_prefix,
    "shared_prefix": shared_prefix,
}
"""The forms by the names that their tools give them."""


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        check_whole(name, number, 1)
