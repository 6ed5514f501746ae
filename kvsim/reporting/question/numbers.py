"""What was measured, by who and what, as an answer asks for it: read from the records that the verbs leave."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvsim.metrics.result import Result
from kvsim.metrics.waste import waste_share
from kvsim.reporting.question.answer import Numbers
from kvsim.study.values import shown


def numbers_of(record: Mapping[str, Any]) -> Numbers:
    """The numbers of a record: of the variants of a comparison, the points of a sweep, the marks of a cliff, the sizes
    of a hit curve, the checks of the planner, or the goals of a validation. ValueError for a record of another form.
    """
    if "variants" in record:
        return {one["name"]: _metrics(one["metrics"]) for one in record["variants"]}
    if "axes" in record:
        return {_point(one): _means(one["metrics"]) for one in record["points"]}
    if "knee_per_s" in record:
        return _cliff(record)
    if "ideal_full_blocks" in record:
        return _hit_curve(record)
    if {"given", "default"} <= set(record):
        return {how: record[how]["summary"] for how in ("given", "default")}
    if "scored_rows" in record:
        return _validation(record)
    raise ValueError(
        f"no record of a comparison, a sweep, a cliff, a hit curve, a check or a validation; keys {list(record)}"
    )


def numbers_of_results(results: Sequence[Result]) -> Numbers:
    """The numbers of results by name, as `numbers_of` has them of a comparison's record."""
    return {result.name: _metrics(result.metrics) for result in results}


def _metrics(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """With the share that is wasted, which a comparison tells too and which follows from the others."""
    return {**metrics, "waste_share": waste_share(metrics)}


def _point(point: Mapping[str, Any]) -> str:
    """The variant, if there is one, and the values that were swept: `cached 16`."""
    values = [shown(value) for value in point["changes"].values()]
    return " ".join([point["variant"], *values] if point["variant"] else values)


def mean_of(spread: Mapping[str, float]) -> float:
    """The mean of the replications; where all agree their own value, so that a count stays one."""
    return spread["min"] if spread["min"] == spread["max"] else spread["mean"]


def _means(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: mean_of(spread) for name, spread in metrics.items() if spread is not None}


def _cliff(record: Mapping[str, Any]) -> Numbers:
    """The rates that are marked, and under each mark's name what was measured at its rate."""
    marks = {name.removesuffix("_per_s"): rate for name, rate in record.items() if name.endswith("_per_s")}
    at = {rate["rate_per_s"]: rate for rate in record["rates"]}
    return {
        "all": record,
        "least": record["rates"][0],
        "most": record["rates"][-1],
        **{name.replace("_", " "): at[rate] for name, rate in marks.items() if rate in at},
    }


def _hit_curve(record: Mapping[str, Any]) -> Numbers:
    sizes = {f"{point['size']['blocks']} blocks": point["policies"] for point in record["points"]}
    ideals = {name: record[name] for name in ("ideal", "ideal_full_blocks") if record[name] is not None}
    needs = {f"{share} of the ideal": size for share, size in record["lru_needs"].items()}
    return {**ideals, **sizes, **needs}


def _validation(record: Mapping[str, Any]) -> Numbers:
    targets = record["summary"]["targets"]
    goals = {"all": len(targets), "met": sum(target["met"] for target in targets)}
    told = {target["goal"]: target["reached"] for target in targets}
    return {"rows": {"all": record["rows"], "scored": record["scored_rows"]}, "goals": goals, **told}
