"""`calibrated`: step time from kernel families fitted to published measurements, and engine overheads fitted to runs.

A step takes: linear layers, experts, collectives and head of its tokens; decode attention, linear in the context read;
prefill attention per chunk, quadratic with its cached prefix; what the engine adds per layer, step and sequence.
Copies, mapped pages and swaps are those of the roofline, unless this GPU measured its own. Times by number of tokens
come from tables that are computed many entries at once; a decode batch's line in its context goes through two contexts
of the fitted range, or through as many as show how this GPU's own kernel bends.
"""

from bisect import bisect_right
from dataclasses import replace

import numpy as np

from kvsim.catalog.footprint import Footprint
from kvsim.catalog.gpus import Gpu
from kvsim.request import PS_PER_S
from kvsim.step import StepPlan
from kvsim.timing.families.device import Device, of_gpu
from kvsim.timing.families.interface import MICROSECOND, Column
from kvsim.timing.families.measured import stands_for
from kvsim.timing.fitted import FittedRange
from kvsim.timing.fitting.calibration import FITTED, Calibration, shipped
from kvsim.timing.interface import Anew, Line
from kvsim.timing.roofline import RooflineTiming
from kvsim.timing.steps.engine import eager_layer_us, overheads
from kvsim.timing.steps.fitted import fitted_range
from kvsim.timing.steps.graphs import EAGER, Graphs
from kvsim.timing.steps.kernels import Kernels
from kvsim.timing.steps.moves import measured_moves
from kvsim.timing.steps.shapes import Layout, Shapes

KNOTS = (512, 8192)
"""Contexts per sequence between which a decode step's line is drawn: exact there, a power mean bends it elsewhere."""
MEASURED_KNOTS = tuple(256 << power for power in range(10))
"""The same where the kernel's own rules are known: splits of few long contexts bend its time more than once."""
HASH_LETTERS = 12
"""So much of the hash of a GPU's own results is told in every output."""
PAGED = "paged_attention:bf16"
"""The family of decode attention whose fit tells one block size from another."""
TABLE_TOKENS = 512
"""Numbers of tokens that are computed at once."""


class CalibratedTiming:
    """The time of a step of `footprint.model` on GPUs of one kind, served by `engine` of a `version`.

    `calibration` stands over the shipped one. `graphs` are the decode batches that the engine captures; None: batches
    are taken as they are, and no launch costs time. `block_size`: of the block tables through which attention reads the
    KV; `page_bytes`: of pages mapped on demand; what these cost is charged where the calibration has measured it, else
    attention takes `lookup` times as long over its KV as through the tables that were measured.
    Raises ValueError for KV of 32 bits, which no measured kernel reads.
    """

    def __init__(
        self,
        footprint: Footprint,
        gpu: Gpu,
        base: RooflineTiming,
        *,
        engine: str,
        version: str,
        calibration: Calibration | None = None,
        graphs: Graphs | None = None,
        lookup: float = 1.0,
        block_size: int | None = None,
        page_bytes: int | None = None,
    ) -> None:
        dtype = {"fp16": "bf16"}.get(footprint.weights_dtype, footprint.weights_dtype)
        kv_dtype = {"fp16": "bf16"}.get(footprint.kv_dtype, footprint.kv_dtype)
        if kv_dtype == "fp32":
            raise ValueError("timing.name: calibrated: no kernel on 32-bit KV was measured; use roofline")
        device = _measured_device(of_gpu(gpu), calibration)
        known = shipped() if calibration is None else calibration.over(shipped())
        measured, self._added = overheads(engine, version)
        ranks = footprint.tensor_parallel
        layout = Layout(tensor_parallel=ranks, expert_tensor=ranks if footprint.model.moe_layers else 1)
        launch = "eager" if graphs == EAGER else "graph"
        shapes, prefill = Shapes(footprint.model, layout, dtype), known.prefill_kernel(device.name)
        self._kernels = Kernels(
            shapes,
            device,
            known.parameters(device.name),
            kv_dtype=kv_dtype,
            prefill=prefill,
            launch=launch,
            block_size=block_size,
        )
        self.fitted: FittedRange | None = fitted_range(
            known, device.name, shapes, f"decode_attention:{kv_dtype}", f"prefill_attention:{prefill}", block_size
        )
        own = {name: one.values for (name_of_gpu, name), one in known.entries.items() if name_of_gpu == device.name}
        tensors = footprint.model.layers * (1 if footprint.model.kv_lora_rank is not None else 2)
        self._moves, moved = measured_moves(
            base.moves, own, kv_bytes=base.moved_bytes, tensors=tensors, block_size=block_size,
            page_bytes=page_bytes,
        )  # fmt: skip
        needed = {
            "linear layers": f"linear:{dtype}",
            "decode attention": f"decode_attention:{kv_dtype}",
            "prefill attention": f"prefill_attention:{prefill}",
        }
        latent = footprint.model.kv_lora_rank is not None
        kernels = [kind for kind, name in needed.items() if known.measured_here(device.name, name, latent=latent)]
        _, others = known.values(device.name, f"linear:{dtype}")
        self.provenance = f"{_provenance(known, [*kernels, *moved], others)}; overheads of {measured}"
        self._base, self._layers = base, footprint.model.layers
        self._graphs = graphs
        self._lookup = 1.0 if kv_dtype == "bf16" and PAGED in own else lookup
        self._launch_us = max(0.0, eager_layer_us() - self._added.layer_us)
        self._tables: dict[int, tuple[Column, Column]] = {}
        own_kernel = stands_for(needed["decode attention"], latent=latent)
        self._knots = MEASURED_KNOTS if (device.name, own_kernel) in known.entries else KNOTS
        self._lines: dict[tuple[int, int], Line] = {}
        self._attended: dict[tuple[int, int], tuple[float, float]] = {}
        self._chunks: dict[tuple[int, int], int] = {}

    def decode(self, rows: int, context: int = 0) -> Line:
        """See `StepTiming`."""
        piece = self._piece(rows, context)
        known = self._lines.get((rows, piece))
        if known is None:
            fixed, slope = self._attention(rows, piece)
            computed, launched_s = self._captured(rows)
            start = self._table_s(0, computed) + self._table_s(1, rows) + self._engine_s(rows) + fixed + launched_s
            until = rows * self._knots[piece + 1] if piece + 2 < len(self._knots) else None
            line = Line(max(1, round(PS_PER_S * start)), round(PS_PER_S * slope), until)
            known = self._lines[rows, piece] = line
        return known

    def anew(self, rows: int, tokens: int) -> Anew:
        """See `StepTiming`. Nobody measured an engine that keeps nothing: the roofline's."""
        return self._base.anew(rows, tokens)

    def step_ps(self, plan: StepPlan) -> int:
        """See `StepTiming`."""
        if plan.pairs:
            return self._base.step_ps(plan)
        rows, context, _ = plan.rows
        if plan.chunks:
            computed_ps = self._prompts_ps(rows, context, plan.padded_chunks)
        else:
            computed_ps = self.decode(rows, context).base_ps
        return computed_ps + self.decode(rows, context).slope_ps * context + self._moves.of(plan)

    def _prompts_ps(self, rows: int, context: int, chunks: list[tuple[int, int]]) -> int:
        """Prompt chunks beside decoding rows: what they add to the rows' own step is scaled as prompts are."""
        tokens = sum(length for length, _ in chunks)
        alone = self._table_s(0, rows)
        added = self._table_s(0, rows + tokens) - alone
        fixed = self._attention(rows, self._piece(rows, context))[0]
        sampled = rows + len(chunks)
        seconds = alone + self._added.prompt_scale * added + self._table_s(1, sampled) + fixed + self._engine_s(sampled)
        return max(1, round(PS_PER_S * seconds)) + sum(self._chunk_ps(length, written) for length, written in chunks)

    def _chunk_ps(self, length: int, written: int) -> int:
        known = self._chunks.get((length, written))
        if known is None:
            parts = self._kernels.attend(np.array([float(length)]), np.array([float(written)]))
            scale = self._added.attention_scale * self._added.prompt_scale
            known = self._chunks[length, written] = round(PS_PER_S * scale * float(parts[0]))
        return known

    def _captured(self, rows: int) -> tuple[int, float]:
        """(rows that a step which only decodes computes, seconds that launching its kernels takes beside)."""
        if self._graphs is None or not rows:
            return rows, 0.0
        padded = self._graphs.padded(rows)
        return (rows, MICROSECOND * self._launch_us * self._layers) if padded is None else (padded, 0.0)

    def _piece(self, rows: int, context: int) -> int:
        """Between which knots the mean context lies; the first and the last piece go on beyond theirs."""
        return bisect_right(self._knots, context // rows, 1, len(self._knots) - 1) - 1 if rows else 0

    def _attention(self, rows: int, piece: int) -> tuple[float, float]:
        """(seconds without context, seconds per context token) of decode attention of all layers."""
        if not rows:
            return 0.0, 0.0
        known = self._attended.get((rows, piece))
        if known is None:
            ends = self._knots[piece], self._knots[piece + 1]
            sequences = np.array([float(rows)] * 2)
            seconds = self._kernels.attend_decode(sequences, np.array(ends, dtype=np.float64))
            near, far = (self._added.attention_scale * float(one) for one in seconds)
            slope = max(0.0, (far - near) / (ends[1] - ends[0]))
            # A piece that is steeper than those before it begins below 0, which the rest of a step makes up for.
            fixed = near - slope * ends[0]
            known = self._attended[rows, piece] = fixed if piece else max(0.0, fixed), slope * self._lookup / rows
        return known

    def _table_s(self, which: int, tokens: int) -> float:
        """What a number of tokens alone decides: 0 linear layers, experts and collectives of so many, 1 their head."""
        if not tokens:
            return 0.0
        block = (tokens - 1) // TABLE_TOKENS
        tables = self._tables.get(block)
        if tables is None:
            first = block * TABLE_TOKENS + 1
            parts = self._kernels.tokens(np.arange(first, first + TABLE_TOKENS, dtype=np.float64))
            added = self._added
            layers = added.linear_scale * parts.linear + added.experts_scale * parts.experts
            layers = layers + added.collectives_scale * parts.collectives
            tables = self._tables[block] = (np.asarray(layers), np.asarray(added.linear_scale * parts.head))
        return float(tables[which][(tokens - 1) % TABLE_TOKENS])

    def _engine_s(self, sequences: int) -> float:
        added = self._added
        return MICROSECOND * (added.layer_us * self._layers + added.step_us + added.sequence_us * sequences)


def _measured_device(device: Device, calibration: Calibration | None) -> Device:
    """The device with the units that the driver reported, to which the fits of this GPU relate."""
    units = None if calibration is None else calibration.about.get("env", {}).get("sm_count")
    return device if units is None else replace(device, units=int(units))


def _provenance(known: Calibration, here: list[str], others: str) -> str:
    """Where the times come from: `here` is what this GPU measured itself, `others` where the rest comes from."""
    if not known.about:
        return others
    results = str(known.about.get("input_sha256", ""))[:HASH_LETTERS]
    measured = ", ".join(here) or "nothing that this model needs"
    rest = FITTED if others == known.provenance else others
    return f"{known.provenance} (results {results}): {measured}; all else: {rest}"
