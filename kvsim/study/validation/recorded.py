"""Recorded runs of whole servers in a folder of measurements: replayed by the engine, not scored in closed form."""

from pathlib import Path

from kvsim.errors import KvsimError
from kvsim.study.recorded.replay import read_meta
from kvsim.study.recorded.session import REQUESTS, Compared, compare_run

PREFIX, META = "vllm_run_", "_meta.json"
"""A run is vllm_run_CARD_MODEL_requests.csv with _meta.json and, if it was kept, _timeseries.csv beside it."""


def recorded_runs(folder: Path) -> tuple[list[Compared], list[str]]:
    """Every run of the folder beside its simulation, by name; and of those that cannot be replayed, why."""
    runs, left = [], []
    for requests in sorted(folder.rglob(f"{PREFIX}*{REQUESTS}")):
        meta = requests.with_name(requests.name.removesuffix(REQUESTS) + META)
        try:
            # Where the server did not say which card it ran on, the name of the file does.
            card = None if read_meta(meta).get("hardware") else meta.name.removeprefix(PREFIX).partition("_")[0]
            runs.append(compare_run(meta, [requests], gpu=card))
        except KvsimError as error:
            left.append(f"recorded run {requests.name}: {error}")
    return runs, left
