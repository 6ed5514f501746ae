"""Points as a flat table: one row each, the device first, sizes as columns `params.NAME`."""

import csv
import io

from kvsim.microbench.results import Results

FIRST = ("run", "backend", "device", "bench", "variant", "role")


def to_csv(results: Results) -> str:
    """Every point of all runs, in file order; a size or field that a point does not state is empty."""
    rows = []
    for number, run in enumerate(results.runs, start=1):
        for point in run.points:
            row = {"run": number, "backend": run.env.backend, "device": run.env.device, **point.fields}
            row |= {f"params.{name}": value for name, value in point.params.items()}
            rows.append({name: _cell(value) for name, value in row.items()})
    names = dict.fromkeys([*FIRST, *(name for row in rows for name in row)])
    sizes = [name for name in names if name.startswith("params.")]
    columns = [*FIRST, *sizes, *(name for name in names if name not in FIRST and name not in sizes)]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else value
