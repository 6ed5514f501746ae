"""How fitted laws and processes are written in a scenario: the one place that knows both sides.

A law or a process is offered if its registry has it and takes the parameters; what a scenario cannot say yet is only
told beside it.
"""

from typing import Any

from kvsim.workload.arrivals import ARRIVALS
from kvsim.workload.fit.arrivals import ArrivalFit
from kvsim.workload.fit.lengths import LengthFit
from kvsim.workload.lengths import law_of

_DIGITS = 6


def length_settings(fit: LengthFit, least: int, most: int) -> dict[str, Any] | None:
    """The keys of `prompt_tokens` or `output_tokens`, clipped to the sample; None: a scenario has no such law."""
    bounds = {"min": least, "max": most}
    tried: tuple[dict[str, Any], ...] = ({"distribution": fit.law} | _rounded(fit.parameters) | bounds,)
    if fit.law == "quantiles":
        grid = {"quantiles": [_short(value) for value in fit.parameters["quantiles"]]}
        tried = ({"distribution": "quantiles"} | grid, {"distribution": "empirical"} | grid)
    elif fit.law == "mixture":
        parts = [{"distribution": "lognormal", **_rounded(part)} for part in fit.parameters["parts"]]
        tried = ({"distribution": "mixture", "parts": parts} | bounds,)
    return next((settings for settings in tried if _is_law(settings)), None)


def arrival_settings(fit: ArrivalFit, rate_per_s: float) -> dict[str, Any] | None:
    """The keys of `arrivals`, beside `rate`; None: a scenario has no such process."""
    settings = {"process": fit.process} | _rounded(fit.parameters)
    return settings if _is_process(settings | {"rate": rate_per_s}) else None


def _is_law(settings: dict[str, Any]) -> bool:
    try:
        law_of(settings)
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _is_process(settings: dict[str, Any]) -> bool:
    try:
        ARRIVALS[settings["process"]](**{key: value for key, value in settings.items() if key != "process"})
    except (KeyError, TypeError, ValueError):
        return False
    return True


def _rounded(parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        key: float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value for key, value in parameters.items()
    }


def _short(value: float) -> int | float:
    return int(value) if value.is_integer() else round(value, 2)
