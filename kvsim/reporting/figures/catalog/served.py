"""The model that a run serves, as its scenario names it."""

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.models import Model, model
from kvsim.errors import InputError
from kvsim.metrics.result import Result


def served(result: Result) -> Model | None:
    """The model of a run; None where the catalogue does not know it, or the file that describes it is not there."""
    name = result.scenario_resolved.get("model.name", result.scenario_resolved.get("model", {})).get("value")
    if not isinstance(name, str):
        return None
    try:
        return model(name)
    except (InputError, OSError):
        return None


def footprint_of(result: Result) -> Footprint | None:
    """What its model costs on one rank, in the number formats of the run; None where the model is not known."""
    shown = served(result)
    if shown is None:
        return None
    resolved = result.scenario_resolved

    def value(key: str, otherwise: object) -> object:
        return resolved.get(key, {}).get("value", otherwise)

    return Footprint(
        shown,
        tensor_parallel=int(str(value("tensor_parallel", 1))),
        kv_dtype=str(value("model.kv_dtype", "bf16")),
        weights_dtype=str(value("model.weights_dtype", "bf16")),
    )
