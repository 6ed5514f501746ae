"""A small scenario for studies, and the table that a study leaves."""

from pathlib import Path

from kvsim.study.store import TABLE

SCENARIO = {
    "model": "llama-3.1-8b",
    "gpu": "RTX 4090",
    "pool": {"tokens": 20000},
    "engine": {"profile": "vllm@0.33-sync", "max_model_len": 4096},
    "workload": {"rate": "4/s", "requests": 40, "prompt_tokens": 500, "output_tokens": 100},
}

GRID = {"workload.rate": ["2/s", "4/s", "8/s"], "pool.tokens": [4096, 8192]}
"""Six points."""

YAML = """\
model: llama-3.1-8b
gpu: RTX 4090
pool: {tokens: 20000}
engine: {profile: vllm@0.33-sync, max_model_len: 4096}
workload: {rate: 4/s, requests: 40, prompt_tokens: 500, output_tokens: 100}
"""


def table(folder: Path) -> bytes:
    """The Parquet file of a study."""
    return (folder / TABLE).read_bytes()
