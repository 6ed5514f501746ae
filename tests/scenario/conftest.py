"""A scenario on disk: `write(NAME, TEXT)` gives its path, `refused(...)` the lines of the message."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.scenario import load

Write = Callable[[str, str], str]
Refused = Callable[..., list[str]]

COMPLETE = """\
model: Llama-3.1-8B
gpu: RTX 4090
pool: {blocks: 2588}
workload:
  rate: 8/s
  requests: 100
  prompt_tokens: {distribution: lognormal, median: 400, sigma: 0.7, max: 4096}
  output_tokens: 128
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def written(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return name

    return written


@pytest.fixture
def refused(write: Write) -> Refused:
    def lines(text: str, *overrides: str) -> list[str]:
        with pytest.raises(InputError) as error:
            load(write("s.yaml", text), overrides=overrides)
        return str(error.value).splitlines()

    return lines
