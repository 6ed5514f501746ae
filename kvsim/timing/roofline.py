"""`roofline`: step time from a data sheet. Good for comparing; its own error is not known until it is calibrated.

A step takes: the linear layers, max(weight bytes / bandwidth, FLOPs / peak); plus decode attention, linear in the
context that is read; plus prefill attention per chunk, quadratic in the chunk; plus fixed costs per layer, step
and sequence; plus copies inside the memory, pages mapped into it and slots swapped to the host. Efficiencies and
overheads stand in `data/roofline.json`, each with its source.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import Gpu
from kvsim.catalog.weights import EMBEDDING_BITS, weight_bytes
from kvsim.request import PS_PER_S
from kvsim.step import StepPlan
from kvsim.timing.fitted import FittedRange
from kvsim.timing.interface import Anew, Line
from kvsim.timing.moves import Moves
from kvsim.timing.steps.graphs import Graphs

LEAST_SHARE = 1e-6
"""The least efficiency; below it one step of a large model would outlast the 64-bit clock."""

MOST_TOKENS = 1_000_000
"""The most tokens that looking up one block may count for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineParameters:
    """The numbers of `data/roofline.json`: shares of data sheet rates, and seconds."""

    weights_bandwidth_efficiency: float
    linear_compute_efficiency: float
    decode_attention_bandwidth_efficiency: float
    prefill_attention_compute_efficiency: float
    block_lookup_tokens: float
    copy_bandwidth_efficiency: float
    kernel_overhead_s: float
    attention_overhead_s: float
    step_overhead_s: float
    sequence_overhead_s: float
    allreduce_latency_s: float
    send_latency_s: float
    page_map_s: float
    eager_layer_s: float
    link_bandwidth_efficiency: float

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_efficiency"):
                right, what = LEAST_SHARE <= value <= 1, f"a share from {LEAST_SHARE:f} to 1"
            elif field.name.endswith("_s"):
                right, what = 0 <= value < 1, "a duration in seconds, from 0 to below 1"
            else:
                right, what = 0 <= value <= MOST_TOKENS, f"a number of tokens, from 0 to {MOST_TOKENS:,}"
            if not right:
                raise ValueError(f"{field.name} is {value}; it must be {what}")


def roofline_parameters(overrides: Mapping[str, float] | None = None) -> RooflineParameters:
    """The stated efficiencies and overheads, some replaced by `overrides`; an unknown name raises ValueError."""
    table = json.loads(files("kvsim.timing").joinpath("data/roofline.json").read_text("utf-8"))
    values = {name: entry["value"] for name, entry in table.items()}
    for name, value in (overrides or {}).items():
        if name not in values:
            raise ValueError(f"{name} is no parameter of the roofline; it has {', '.join(sorted(values))}")
        values[name] = value
    return RooflineParameters(**values)


def lookup_cost(parameters: RooflineParameters, block_size: int | None) -> float:
    """How much longer attention reads KV that it finds through a block table: it spends as long on each block as on
    some token reads. 1 without a table (None)."""  # fmt: skip
    return 1 if block_size is None else 1 + parameters.block_lookup_tokens / block_size


class RooflineTiming:
    """The time of a step of `footprint.model` on `footprint.tensor_parallel` GPUs of one kind.

    `block_size` is that of the block tables through which attention reads the KV (None: contiguous, no tables),
    `gpu_share` the part of a slot's KV that is on the GPU, and moves when the slot is copied or swapped. `graphs` are
    the decode batches that the engine captures; None: batches are taken as they are, and no launch costs time.
    """

    provenance = "datasheet"
    fitted: FittedRange | None = None

    def __init__(
        self,
        footprint: Footprint,
        gpu: Gpu,
        parameters: RooflineParameters | None = None,
        *,
        block_size: int | None = None,
        gpu_share: float = 1.0,
        graphs: Graphs | None = None,
    ) -> None:
        self._footprint = footprint
        self._parameters = p = parameters or roofline_parameters()
        self._ranks = footprint.tensor_parallel
        # A step looks up a few rows of an input embedding; only a table that is the LM head too is read whole.
        weights = footprint.weights
        looked_up = 0 if weights.tied else weights.embedding * EMBEDDING_BITS // 8
        self._weights_read = footprint.weight_bytes - looked_up / self._ranks
        peak = gpu.flops_per_s(footprint.weights_dtype)
        attention_peak = gpu.flops_per_s("bf16")
        bandwidth = gpu.bandwidth_bytes_per_s
        self._weights_rate = bandwidth * p.weights_bandwidth_efficiency
        self._linear_rate = peak * p.linear_compute_efficiency
        self._prefill_rate = attention_peak * p.prefill_attention_compute_efficiency
        lookup = lookup_cost(p, block_size)
        self._kv_rate = bandwidth * p.decode_attention_bandwidth_efficiency / lookup
        self._link_rate = gpu.gpu_link_bytes_per_s / 2 * p.link_bandwidth_efficiency
        if self._ranks > 1 and not self._link_rate:
            # Cards without a direct link talk over the host's.
            self._link_rate = gpu.host_link_bytes_per_s * p.link_bandwidth_efficiency
        layers = footprint.model.layers
        self._fixed_s = p.step_overhead_s + layers * (4 * p.kernel_overhead_s + p.attention_overhead_s)
        kv_bytes = footprint.kv_bytes_per_token
        # Window layers are taken to keep and read the whole sequence, as the pool does (said in `not_modelled`).
        pairs = footprint.attention_flops_per_pair + footprint.window_attention_flops_per_pair
        pair_flops = pairs / self._ranks
        self._kv_bytes = kv_bytes
        self._pair_flops = pair_flops
        self._slope_ps = round(PS_PER_S * max(kv_bytes / self._kv_rate, pair_flops / self._prefill_rate))
        self.moved_bytes = kv_bytes * gpu_share
        """Of a slot, on the GPU: what is copied, and what is swapped."""
        self.peer_bytes_per_s = (
            gpu.gpu_link_bytes_per_s / 2 or gpu.host_link_bytes_per_s
        ) * p.link_bandwidth_efficiency
        """What the link to another GPU carries in one direction; the host's, where there is no other."""
        self.host_bytes_per_s = gpu.host_link_bytes_per_s * p.link_bandwidth_efficiency
        """What the link to host memory carries in one direction."""
        self.moves = Moves(
            copied_ps=round(PS_PER_S * 2 * self.moved_bytes / (bandwidth * p.copy_bandwidth_efficiency)),
            mapped_ps=round(PS_PER_S * p.page_map_s),
            swapped_ps=round(PS_PER_S * self.moved_bytes / self.host_bytes_per_s),
        )
        self._anew: dict[int, tuple[Anew, Anew]] = {}
        self._bases: dict[int, Line] = {}
        self._graphs = graphs
        self._launch_ps = round(PS_PER_S * p.eager_layer_s * layers)
        self._linear: dict[tuple[int, int], int] = {}

    def decode(self, rows: int, context: int = 0) -> Line:
        """See `StepTiming`."""
        known = self._bases.get(rows)
        if known is None:
            padded = rows if self._graphs is None else self._graphs.padded(rows)
            base = self._linear_ps(rows, rows) + self._launch_ps if padded is None else self._linear_ps(padded, rows)
            known = self._bases[rows] = Line(base, self._slope_ps)
        return known

    def anew(self, rows: int, tokens: int) -> Anew:
        """See `StepTiming`.

        Below some number of tokens the linear layers take as long as reading the weights (all experts of them), above
        it as long as the computing; the two pieces meet where these are equal.
        """
        known = self._anew.get(rows)
        if known is None:
            known = self._anew[rows] = self._pieces(rows)
        reading, computing = known
        assert reading.until_tokens is not None
        return reading if tokens < reading.until_tokens else computing

    def _pieces(self, rows: int) -> tuple[Anew, Anew]:
        footprint, p = self._footprint, self._parameters
        fixed_s, token_s = self._fixed_s + p.sequence_overhead_s * rows, 0.0
        if self._ranks > 1:
            fixed_s += 2 * footprint.model.layers * p.allreduce_latency_s
            token_s = 2 * footprint.model.layers * self._ring_s(1)
        read_s = self._weights_read / self._weights_rate
        compute_s = 2 * footprint.linear_parameters / self._ranks / self._linear_rate
        heads_s = 2 * footprint.lm_head_parameters * rows / self._ranks / self._linear_rate
        until = max(0, math.ceil((read_s - heads_s) / compute_s))
        pair_ps = round(PS_PER_S * self._pair_flops / self._prefill_rate)
        return (
            Anew(round(PS_PER_S * (fixed_s + read_s)), round(PS_PER_S * token_s), pair_ps, until),
            Anew(round(PS_PER_S * (fixed_s + heads_s)), round(PS_PER_S * (token_s + compute_s)), pair_ps),
        )

    def step_ps(self, plan: StepPlan) -> int:
        """See `StepTiming`."""
        rows, context, _ = plan.rows
        computed_ps = self._prompts_ps(plan) if plan.chunks or plan.pairs else self.decode(rows)[0]
        return computed_ps + (0 if plan.pairs else self._slope_ps * context) + self.moves.of(plan)

    def _prompts_ps(self, plan: StepPlan) -> int:
        """Linear layers, and the attention of prompts; where nothing is kept, of everything."""
        chunks = plan.padded_chunks
        sequences = plan.rows.height + len(chunks)
        if plan.pairs:
            tokens = plan.computed_anew
            base, token, pair, _ = self.anew(sequences, tokens)
            return base + token * tokens + pair * plan.pairs
        tokens = attention_ps = 0
        for length, written in chunks:
            tokens += length
            pairs = length * written + length * (length + 1) / 2
            read = (written + length) * self._kv_bytes
            attention_ps += round(PS_PER_S * max(pairs * self._pair_flops / self._prefill_rate, read / self._kv_rate))
        return self._linear_ps(tokens + plan.rows.height, sequences) + attention_ps

    def _linear_ps(self, tokens: int, sequences: int) -> int:
        """Everything that does not depend on the context: weights, fixed costs, collectives."""
        known = self._linear.get((tokens, sequences))
        if known is None:
            known = self._linear[tokens, sequences] = round(PS_PER_S * self._linear_s(tokens, sequences))
        return known

    def _linear_s(self, tokens: int, sequences: int) -> float:
        footprint, p = self._footprint, self._parameters
        flops = 2 * (footprint.linear_parameters * tokens + footprint.lm_head_parameters * sequences) / self._ranks
        seconds = max(self._weight_bytes(tokens) / self._weights_rate, flops / self._linear_rate)
        seconds += self._fixed_s + p.sequence_overhead_s * sequences
        if self._ranks > 1:
            seconds += 2 * footprint.model.layers * (p.allreduce_latency_s + self._ring_s(tokens))
        return seconds

    def _ring_s(self, tokens: int) -> float:
        """Seconds that the bytes of one all-reduce take on the link."""
        message = 2 * tokens * self._footprint.model.hidden
        return 2 * (self._ranks - 1) / self._ranks * message / self._link_rate

    def _weight_bytes(self, tokens: int) -> float:
        """Bytes of weights one rank reads: of the experts only those that the batch touches, drawn evenly."""
        footprint = self._footprint
        if not footprint.expert_parameters:
            return self._weights_read
        untouched = (1 - footprint.experts_active / footprint.experts) ** tokens
        experts = weight_bytes(footprint.experts * footprint.expert_parameters, footprint.weights_dtype)
        return self._weights_read - untouched * experts / self._ranks
