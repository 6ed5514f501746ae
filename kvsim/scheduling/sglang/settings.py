"""What a user sets (SGLang's flags) and what the release fixes (`data/rules.json`, with sources)."""

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """SGLang's flags, by their names; sizes in tokens."""

    chunked_prefill_size: int | None = None
    """Tokens of prompts that one pass computes at most; None: prompts are not cut."""
    max_prefill_tokens: int = 16384
    max_running_requests: int = 64
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    enable_mixed_chunk: bool = False
    overlap: bool = False
    """The result of a batch is processed one pass later, beside the next batch."""

    @property
    def mixes(self) -> bool:
        """Decoding requests ride along in a prefill."""
        return self.enable_mixed_chunk and self.chunked_prefill_size is not None


@dataclass(frozen=True, slots=True)
class Rules:
    """The release's own numbers; what each means stands beside its value."""

    clip_new_tokens: int
    initial_ratio: float
    least_ratio_share: float
    ratio_decay_steps: int
    retract_ahead_tokens: int
    matched_requests: int
    touch_passes: int
    short_match_tokens: int
    shared_wait_tokens: int
    drain_reserve_tokens: int


def release_rules() -> Rules:
    """Those of SGLang 0.5.23."""
    table = json.loads(files("kvsim.scheduling.sglang").joinpath("data/rules.json").read_text("utf-8"))
    return Rules(**{name: entry["value"] for name, entry in table.items()})
