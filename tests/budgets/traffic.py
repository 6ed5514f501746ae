"""The traffic w_n that peers were measured on, written as a trace in the Azure form.

Prompts, outputs and arrivals are drawn in that order from `numpy.random.default_rng(0)`; see the issue "The main job".
"""

import math
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np


def write_w(path: Path, n: int, *, speed: float = 1.0) -> Path:
    """Write w_n to `path`, with arrivals `speed` times as fast; returns the path."""
    r = np.random.default_rng(0)
    prompts = np.clip(np.round(r.lognormal(math.log(400), 0.7, n)), 16, 4096).astype(int)
    outputs = np.clip(np.round(r.lognormal(math.log(110), 0.6, n)), 4, 1024).astype(int)
    arrivals = np.cumsum(r.exponential(1 / 8, n)) / speed
    origin = datetime(2023, 11, 16)
    with path.open("w", encoding="utf-8") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for arrival, prompt, output in zip(arrivals, prompts, outputs, strict=True):
            ticks = round(arrival * 10**7)
            moment = origin + timedelta(seconds=ticks // 10**7)
            file.write(f"{moment:%Y-%m-%d %H:%M:%S}.{ticks % 10**7:07d},{prompt},{output}\n")
    return path
