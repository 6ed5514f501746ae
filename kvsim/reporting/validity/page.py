"""The page on the validity envelope, from the data files that runs and plans are made with; it measures nothing."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from kvsim.capacity.answers.expected import CLASSES, error_table
from kvsim.catalog.engines import profiles
from kvsim.reporting.exports.markdown import escaped, rows
from kvsim.timing.expected import Class, error_classes

FAMILIES = {
    "decode_attention": "Decode attention",
    "prefill_attention": "Prefill attention",
    "linear": "Linear layers",
    "moe": "Mixture of experts",
    "all_reduce": "All-reduce",
}
"""Kernel families by the key of their fits, in the order of the page."""
UNSEEN = {
    "model": "model",
    "gpu": "GPU",
    "engine": "engine release",
    "everything": "everything: nothing is fitted",
}

HEAD = """# Where kvsim holds, and where it does not

What errors to expect, in which ranges, and who says so. Written by `kvsim validate --envelope` from the data files that
every run and plan is made with: nothing on this page is typed in by hand but the sentences. Nothing was measured by
kvsim itself; all measurements are others', published. Errors are |predicted / measured - 1| of runs, starts or kernels
that the prediction had not seen, unless it says otherwise; bias is the median with its sign.
"""


def validity_page() -> str:
    """The whole page as Markdown; the same bytes for the same data files."""
    return "".join(_parts())


def _parts() -> Iterator[str]:
    facts = json.loads(files("kvsim.reporting.validity").joinpath("data/uses.json").read_text("utf-8"))
    numbers = _numbers()
    yield HEAD
    yield "\n## In short\n\n"
    yield from _table(
        ["question", "how far off", "shown by"],
        [[cell.format(**numbers) for cell in row] for row in facts["holds"]],
        left=3,
    )
    yield "\n## What not to use kvsim for\n\n"
    for use, why in facts["not_for"]:
        yield f"- **{use}**: {why.format(**numbers)}.\n"
    yield from _capacity()
    yield from _latencies()
    yield from _families()
    yield from _engines()
    yield from _data_sheets()
    yield from _left_out()


def _numbers() -> dict[str, str]:
    """What the sentences of the page are filled with."""
    table = error_table()
    found = {"tight_share": _percent(table["tight_share"])}
    for name, one in table["classes"].items():
        found |= {f"{name}_n": str(one["n"])} | {f"{name}_{key}": _percent(one[key]) for key in ("median", "p90")}
    served = {
        "calibrated": _class("calibrated", "gpu", "dense"),
        "moe": _class("calibrated", "gpu", "moe"),
        "roofline": _class("roofline", "everything", "dense"),
    }
    for name, its in served.items():
        for latency, errors in (("tpot", its.tpot), ("ttft", its.ttft or {})):
            found |= {f"{latency}_{name}_{key}": _percent(errors.get(key)) for key in ("median", "p90")}
        found[f"tpot_{name}_n"] = f"{int(its.tpot['n']):,}"
    return found


def _class(timing: str, unseen: str, kind: str) -> Class:
    """That of vLLM of today on any GPU."""
    asked = (timing, unseen, kind, None, "vllm")
    return next(one for one in error_classes() if (one.timing, one.unseen, one.kind, one.gpu, one.engine) == asked)


def _capacity() -> Iterator[str]:
    table = error_table()
    yield "\n## KV memory planned\n\nTokens of the pool, planned against logged (`kvsim capacity --check-csv`).\n\n"
    yield from _table(
        ["class", "starts", "median", "p90"],
        [
            [text.format(share=table["tight_share"]), str(one["n"]), _percent(one["median"]), _percent(one["p90"])]
            for name, text in CLASSES.items()
            for one in [table["classes"][name]]
        ],
    )
    report = "[reports/capacity](../capacity/README.md)"
    yield f"\nSource: the logs in `{table['table']}`, each with its link in {report}.\n"


def _latencies() -> Iterator[str]:
    yield (
        "\n## Latencies of served runs\n\nBy what a prediction had to do without. Each answer states the error of the "
        "closest class that it fits, from the top down; where none fits it says that none is known.\n"
    )
    titles = {
        "calibrated": "Step times `calibrated`",
        "roofline": "Step times `roofline`, from data sheets: the default",
    }
    for timing, title in titles.items():
        yield f"\n### {title}\n\n"
        yield from _table(
            ["unseen", "models", "GPU", "engine", "runs", "TPOT median", "p90", "bias", "TTFT median", "p90", "bias"],
            [_latency(one) for one in error_classes() if one.timing == timing],
            left=4,
        )
    table = _data("kvsim.timing", "expected_errors.json")
    sources = ", ".join(f"`{name}`" for name in table["provenance"]["inputs_sha256"])
    yield (
        f"\nSources: {sources}; licences and places in `kvsim/timing/data/README.md`, every row in "
        "[reports/validation](../validation/README.md).\n"
    )


def _latency(one: Class) -> list[str]:
    gpu = one.gpu or (f"any of {len(one.gpus)}" if len(one.gpus) > 1 else f"any; of {one.gpus[0]}")
    cells = [UNSEEN[one.unseen], "MoE" if one.kind == "moe" else one.kind, gpu, one.engine or "any"]
    cells.append(f"{int(one.tpot['n']):,}")
    for errors in (one.tpot, one.ttft or {}):
        cells += [_percent(errors.get("median")), _percent(errors.get("p90")), _signed(errors.get("bias"))]
    return cells


def _families() -> Iterator[str]:
    calibration = _data("kvsim.timing", "calibrations.json")
    yield (
        f"\n## Kernels: what was fitted, and in which range\n\nErrors here are of the fit on its own rows; on unseen "
        f"shapes and GPUs they are in [reports/validation](../validation/README.md). All of it: "
        f"{calibration['provenance']}. A run that leaves a range says so.\n"
    )
    for family, title in FAMILIES.items():
        fits = [
            (gpu, name, fit)
            for gpu, own in calibration["gpus"].items()
            for name, fit in own.items()
            if name.split(":")[0] == family
        ]
        ranges = list(dict.fromkeys(key for _, _, fit in fits for key in fit["fitted_range"]))
        yield f"\n### {title}\n\n"
        yield from _table(
            ["GPU", "kind", "rows", *(key.replace("_", " ") for key in ranges), "median", "p90", "source"],
            [_kernel(gpu, name.partition(":")[2], fit, ranges) for gpu, name, fit in fits],
            left=2,
        )


def _kernel(gpu: str, kind: str, fit: Mapping[str, Any], ranges: Sequence[str]) -> list[str]:
    spans = (_range(fit["fitted_range"].get(key)) for key in ranges)
    errors = (_percent(fit[f"{name}_abs_error"]) for name in ("median", "p90"))
    return [gpu, kind, f"{fit['rows']:,}", *spans, *errors, fit["source"]]


def _engines() -> Iterator[str]:
    table = _data("kvsim.timing", "engines.json")
    names = list(dict.fromkeys(key for one in table["engines"].values() for key in one["parameters"]))
    yield (
        f"\n## Engines: what a step costs beside its kernels\n\n{table['provenance'].capitalize()}; value ± standard "
        "error, a scale multiplies the kernels of its family.\n\n"
    )
    units = {name: its["unit"] for one in table["engines"].values() for name, its in one["parameters"].items()}
    heads = [name.removesuffix(f"_{units[name]}").replace("_", " ") for name in names]
    said = ["" if units[name] == "1" else f" ({units[name]})" for name in names]
    yield from _table(
        ["engine", "runs", *(head + unit for head, unit in zip(heads, said, strict=True))],
        [
            [engine, f"{one['rows']:,}", *(_fitted(one["parameters"].get(name)) for name in names)]
            for engine, one in table["engines"].items()
        ],
    )


def _data_sheets() -> Iterator[str]:
    table = _data("kvsim.timing", "roofline.json")
    yield "\n## The default: data sheets and stated efficiencies\n\n"
    yield from _table(
        ["what", "value", "unit", "source"],
        [[name.replace("_", " "), f"{one['value']:g}", one["unit"], one["source"]] for name, one in table.items()],
        left=4,
    )


def _left_out() -> Iterator[str]:
    yield (
        "\n## What each engine's rules leave out\n\nEach run says what of this holds for it, and what else it leaves "
        "out.\n"
    )
    for profile in profiles():
        yield f"\n**{profile.name}** ({escaped(profile.description)})\n\n"
        for gap in profile.known_deviations or ("nothing known",):
            yield f"- {escaped(gap)}\n"


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> Iterator[str]:
    """A table whose first `left` columns hold text."""
    yield from rows(heads, ["---" if place < left else "---:" for place in range(len(heads))])
    yield from rows(*lines)


def _data(room: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files(room).joinpath(f"data/{name}").read_text("utf-8"))
    return found


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    percent = 100 * share
    return f"{percent:.3g} %" if percent < 10 else f"{percent:.0f} %"


def _signed(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.0f} %"


def _range(ends: Sequence[float] | None) -> str:
    if ends is None:
        return ""
    low, high = (f"{end:,.6g}".replace("e+0", "e") if end < 1e6 else f"{end:.3g}".replace("e+0", "e") for end in ends)
    return low if low == high else f"{low} to {high}"


def _fitted(parameter: Mapping[str, Any] | None) -> str:
    return "" if parameter is None else f"{parameter['value']:.3g} ± {parameter['standard_error']:.2g}"
