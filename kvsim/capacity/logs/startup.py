"""What a start-up log says: settings, memory per rank, the pool, and how the start ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kvsim.capacity.logs.printed import Printed

Engine = Literal["vllm", "sglang", "trtllm"]

REASON_CLASSES = {
    "max_model_len_above_pool": "the KV of one request of max_model_len does not fit the pool",
    "no_kv_memory": "weights and workspace leave no memory for KV",
    "gpu_memory_taken": "less memory is free at the start than the engine is told to take",
    "tensor_parallel": "the number of GPUs does not divide the heads or the vocabulary",
    "oom_before_kv": "memory ran out before the KV pool was sized",
    "oom_after_kv": "memory ran out after the KV pool was sized, in warm-up or graph capture",
}
"""Why a start fails. The first four are refusals, the `oom_` ones are deaths."""

POOL = ("kv_tokens", "kv_blocks", "max_concurrency")
"""Numbers that hold for all ranks together, though several may print them: the smallest counts."""


@dataclass(frozen=True, kw_only=True)
class StartupLog:
    """One start of one engine, as its log tells it.

    `settings` holds what the log echoes, under kvsim's own names (`tensor_parallel`, `gpu_memory_utilization`,
    `mem_fraction_static`, `max_model_len`, `max_num_seqs`, `max_num_batched_tokens`, `dtype`, `quantization`,
    `kv_cache_dtype`, `block_size`, ...); what the log leaves to the engine's default is absent. `ranks` maps a
    worker ("TP0", "PP1_TP0"; "" where lines name none) to its numbers:

    - memory of one rank in GiB: `total_gib` of the card, `usable_gib` (share x total), `free_gib` before the
      weights, `weights_gib`, `activation_gib` (peak of the profiled step), `non_torch_gib`, `consumed_gib`
      (weights and non-torch together), `cuda_graph_gib` (captured), `cuda_graph_estimate_gib` (set aside),
      `kv_memory_gib`, its halves `k_gib` and `v_gib`, `left_gib` after the start;
    - the pool: `kv_tokens`, `kv_blocks`, `cpu_blocks`, `max_concurrency`, `kv_bytes_per_token`;
    - of a refusal or death: `needed_kv_gib`, `estimated_max_len`, `oom_asked_gib`, `oom_free_gib`.
    """

    engine: Engine
    version: str | None
    model: str | None
    gpu: str | None
    settings: Mapping[str, Any]
    ranks: Mapping[str, Mapping[str, Printed]]
    started: bool
    reason_class: str | None = None
    reason: str | None = None
    reason_line_number: int | None = None

    @property
    def outcome(self) -> Literal["started", "refused", "oom", "unknown"]:
        """How the start ended; `unknown` where the log breaks off before."""
        if self.reason_class is not None:
            return "oom" if self.reason_class.startswith("oom_") else "refused"
        return "started" if self.started else "unknown"

    @property
    def binding_rank(self) -> str:
        """The rank with the least KV memory, which decides for all; the first where none prints any."""
        printing = [rank for rank, numbers in self.ranks.items() if "kv_memory_gib" in numbers]
        if printing:
            return min(printing, key=lambda rank: self.ranks[rank]["kv_memory_gib"].value)
        return next(iter(self.ranks), "")

    @property
    def numbers(self) -> dict[str, Printed]:
        """The numbers that decide: the binding rank's; what it does not print is the first other rank's.

        Of the pool (`kv_tokens`, `kv_blocks`, `max_concurrency`) the smallest of all ranks.
        """
        binding = self.binding_rank
        decisive: dict[str, Printed] = {}
        for rank in sorted(self.ranks, key=lambda rank: rank != binding):
            for name, number in self.ranks[rank].items():
                decisive.setdefault(name, number)
                if name in POOL and number.value < decisive[name].value:
                    decisive[name] = number
        return decisive
