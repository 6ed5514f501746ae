"""A fitted workload as the text of a scenario's section, with comments that say how far it is off."""

import json
import textwrap
from typing import Any

from kvsim.workload.fit.arrivals import TIED
from kvsim.workload.fit.workload import WorkloadFit

_WIDTH = 100
_LONG = 60
"""Letters of a value beyond which its keys stand on lines of their own."""


def scenario_text(fit: WorkloadFit) -> str:
    """YAML that a scenario holds under its other keys: strings quoted, lists wrapped."""
    lines = _comment(f"Fitted to {json.dumps(fit.trace)}, {fit.requests:,} requests; behind each law its distance (KS)")
    for key, fits in (("prompt_tokens", fit.prompt), ("output_tokens", fit.output)):
        lines += _comment(f"{key}: " + ", ".join(f"{one.law} {one.ks:.3f}" for one in fits))
    if fit.measured is not None and fit.arrivals:
        told = [
            f"{one.process} " + ("-" if one.ks is None else f"{one.ks:.3f}") + f" (IDC {one.idc:.3g})"
            for one in fit.arrivals
            if one.idc is not None
        ]
        idc = "-" if fit.measured.idc is None else f"{fit.measured.idc:.3g}"
        lines += _comment(f"gaps: {', '.join(told)}; measured IDC over {fit.measured.bin_s} s: {idc}")
        if fit.measured.tied_share > TIED:
            share = f"{100 * fit.measured.tied_share:.0f} %"
            lines += _comment(
                f"{share} of the arrivals share a time with another: they were spread over the clock's tick"
            )
        lines += _unsaid(fit)
    elif fit.arrivals:
        lines += _comment("arrivals: all clients as one, with the median CV of their windows by rate")
    if "rate" not in fit.settings:
        lines += _comment("the trace has no arrival times: give a rate, for example rate: 8/s")
    lines.append("workload:")
    for key, value in fit.settings.items():
        lines += _entry(key, value, "  ")
    return "\n".join(lines) + "\n"


def _unsaid(fit: WorkloadFit) -> list[str]:
    """The modulated process, where a scenario does not have it: it may be what the trace is like."""
    return [
        line
        for one in fit.arrivals
        if one.process == "mmpp" and fit.chosen.get("arrivals") != "mmpp"
        for line in _comment(
            f"mmpp: {one.parameters['rates_per_s'][0]:.4g} and {one.parameters['rates_per_s'][1]:.4g} per s, "
            f"for {one.parameters['sojourns_s'][0]:.4g} and {one.parameters['sojourns_s'][1]:.4g} s in the mean"
        )
    ]


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def _entry(key: str, value: Any, indent: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{indent}{key}: {_scalar(value)}"]
    flow = "{" + ", ".join(f"{name}: {_scalar(inner)}" for name, inner in value.items()) + "}"
    if len(flow) <= _LONG:
        return [f"{indent}{key}: {flow}"]
    lines = [f"{indent}{key}:"]
    for name, inner in value.items():
        text = f"{name}: {_scalar(inner)}"
        lines += textwrap.wrap(text, _WIDTH, initial_indent=indent + "  ", subsequent_indent=indent + "    ")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_scalar(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_scalar(inner)}" for name, inner in value.items()) + "}"
    return (
        value
        if isinstance(value, str) and value.replace("_", "").replace("/", "").replace(".", "").isalnum()
        else json.dumps(value)
    )
