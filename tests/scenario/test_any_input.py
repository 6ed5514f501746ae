"""Whatever stands at whatever key: a scenario or an InputError, never another exception."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.errors import InputError
from kvsim.scenario import Scenario
from kvsim.scenario.schema import Settings
from kvsim.scenario.schema.explain import all_keys

KEYS = [
    *all_keys(Settings, ""),
    "variants",
    "variants.a",
    "variants.a.seed",
    "extra",
    "workload.extra",
    "timing.x",
]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.sampled_from([math.nan, math.inf, -0.5, 0.5, 1e30, 2**31, 2**53 + 1, -(2**63) - 1, 10**30, 10**400]),
    st.sampled_from(
        [
            "",
            ".",
            "/",
            "8/s",
            "-8/s",
            "1GiB",
            "2s",
            "paged",
            "gamma",
            "zipf",
            "model_limit",
            "x y",
            "~",
            "\ud800",
            "9e9TiB",
        ]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "distribution", "min", "max", "x", "rate", "trace"]), inner, max_size=3
        ),
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KEYS), VALUES), min_size=1, max_size=4))
def test_any_value_at_any_key_is_read_or_refused(changes: list[tuple[str, Any]]) -> None:
    data: dict[str, Any] = {
        "model": "Llama-3.1-8B",
        "gpu": "H100",
        "workload": {"rate": "8/s", "requests": 10, "prompt_tokens": 100, "output_tokens": 10},
    }
    for key, value in changes:
        holder = data
        *above, last = key.split(".")
        for word in above:
            inner = holder.get(word)
            if not isinstance(inner, dict):
                inner = holder[word] = {}
            holder = inner
        holder[last] = value
    try:
        scenario = Scenario.from_dict(data, name="any")
    except InputError as error:
        message = str(error)
    else:
        message = ""
        assert Scenario.from_dict(scenario.to_dict(), name="any").settings == scenario.settings
    assert all(line.startswith("any: ") for line in message.splitlines())
