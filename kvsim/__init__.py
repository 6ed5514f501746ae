"""kvsim: a discrete-event simulator of the KV memory of LLM serving with many requests at once.

    >>> from kvsim import Scenario, run
    >>> result = run(Scenario.from_dict({
    ...     "model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"tokens": 41408},
    ...     "workload": {"rate": "4/s", "requests": 20, "prompt_tokens": 500, "output_tokens": 100},
    ... }))
    >>> result.metrics["finished"]
    20

Names are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from kvsim.version import __version__

if TYPE_CHECKING:
    from kvsim.metrics.result import Result
    from kvsim.scenario.resolve import Scenario
    from kvsim.study import compare, plan, run, sweep

__all__ = ["Result", "Scenario", "__version__", "compare", "plan", "run", "sweep"]

_HOMES = {
    "Result": "kvsim.metrics.result",
    "Scenario": "kvsim.scenario.resolve",
    "compare": "kvsim.study",
    "plan": "kvsim.study",
    "run": "kvsim.study",
    "sweep": "kvsim.study",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
