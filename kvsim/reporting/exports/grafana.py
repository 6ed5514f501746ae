"""A Grafana dashboard of what the Prometheus export writes; its first rows also show a real vLLM.

Panels are facts in `data/dashboard.json`: title, unit, width, and what each line shows. Expressions are of the metrics
in `families.names` alone.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from kvsim.reporting.exports.interface import Export, Files, Options, Source

SCHEMA_VERSION = 39
"""Of the dashboard's JSON: Grafana 11 writes it, later ones read it."""
COLUMNS = 24
"""Units of width of Grafana's grid."""
HEIGHT, ROW_HEIGHT = 8, 1
MODEL = 'model_name=~"$model_name"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _files(source: Source, options: Options) -> Files:
    yield "dashboard.json", iter([json.dumps(dashboard(source), indent=1) + "\n"])


def dashboard(source: Source) -> dict[str, Any]:
    """The dashboard as Grafana imports it, over the time of the run: OpenMetrics of it begins in 1970."""
    end_ms = max(round(float(result.metrics["simulated_s"]) * 1000) for result in source.results)
    return {
        "title": f"kvsim: {source.title}",
        "uid": None,
        "tags": ["kvsim", "vllm"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "timezone": "utc",
        "refresh": "",
        "time": {"from": _utc(0), "to": _utc(end_ms)},
        "templating": {"list": [_datasource(), _model()]},
        "annotations": {"list": []},
        "panels": list(_panels()),
    }


def _utc(time_ms: int) -> str:
    from datetime import UTC, datetime, timedelta

    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03d}Z"


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def _model() -> dict[str, Any]:
    query = "label_values(vllm:num_requests_running, model_name)"
    return {
        "name": "model_name", "label": "Model", "type": "query", "datasource": DATASOURCE, "definition": query,
        "query": {"query": query, "refId": "model"}, "refresh": 2, "includeAll": True, "allValue": ".*",
        "current": {"text": "All", "value": "$__all"}, "multi": False,
    }  # fmt: skip


def _panels() -> Iterator[dict[str, Any]]:
    """Rows of panels from the top, side by side as long as they fit."""
    facts = json.loads(files("kvsim.reporting.exports").joinpath("data/dashboard.json").read_text("utf-8"))
    number, top = 0, 0
    for row in facts["rows"]:
        number += 1
        yield {"id": number, "type": "row", "title": row["title"], "collapsed": False, "panels": [],
               "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": ROW_HEIGHT}}  # fmt: skip
        top, left = top + ROW_HEIGHT, 0
        for panel in row["panels"]:
            number += 1
            if left + panel["width"] > COLUMNS:
                top, left = top + HEIGHT, 0
            yield _panel(number, panel, {"x": left, "y": top, "w": panel["width"], "h": HEIGHT})
            left += panel["width"]
        top += HEIGHT


def _panel(number: int, panel: dict[str, Any], place: dict[str, int]) -> dict[str, Any]:
    stacking = {"mode": "normal" if panel.get("stacked") else "none", "group": "A"}
    custom = {"drawStyle": "line", "fillOpacity": 60 if panel.get("stacked") else 8, "showPoints": "never",
              "stacking": stacking}  # fmt: skip
    defaults: dict[str, Any] = {"unit": panel["unit"], "min": 0, "custom": custom}
    if panel["unit"] == "percentunit":
        defaults["max"] = 1
    return {
        "id": number,
        "type": "timeseries",
        "title": panel["title"],
        "description": panel.get("description", ""),
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": DATASOURCE, "expr": expr.replace("MODEL", MODEL),
             "legendFormat": legend}
            for at, (legend, expr) in enumerate(panel["lines"].items())
        ],
    }  # fmt: skip


GRAFANA = Export(
    name="grafana",
    meaning="a Grafana dashboard of the prometheus export, which also shows a real vLLM",
    files=_files,
)
