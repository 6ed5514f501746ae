"""Seconds of the kernels of a step on one GPU, family by family, from parameters for each family."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kvsim.timing.families import Device, family
from kvsim.timing.families.interface import Column, Values
from kvsim.timing.families.measured import stands_for
from kvsim.timing.steps.shapes import Matrix, Shapes

BF16_BYTES = 2
ALL_REDUCES_PER_LAYER = 2


@dataclass(frozen=True, slots=True)
class Parts:
    """Seconds of a step by family, one number per batch."""

    linear: Column
    experts: Column
    attention: Column
    collectives: Column
    head: Column

    @property
    def total(self) -> Column:
        """All of them, one after the other."""
        return np.asarray(self.linear + self.experts + self.attention + self.collectives + self.head)


class Kernels:
    """Kernel times of `shapes` on `device`. `parameters`: values by name of family (see `calibration`).

    `kv_dtype` is the type of the cache; `prefill` the kind of prefill kernel; `launch` of the collectives. `block_size`
    is that of the block tables through which decoding reads the KV (None: in one piece), where its cost was measured.
    """

    def __init__(
        self,
        shapes: Shapes,
        device: Device,
        parameters: Mapping[str, Values],
        *,
        kv_dtype: str = "bf16",
        prefill: str = "by_head",
        launch: str = "graph",
        block_size: int | None = None,
    ) -> None:
        self._shapes, self._device, self._parameters = shapes, device, parameters
        self._decode = f"decode_attention:{kv_dtype}"
        self._prefill = f"prefill_attention:{prefill}"
        self._all_reduce = f"all_reduce:{launch}"
        self._block = float(block_size or 0)

    def decode(self, sequences: Column, context: Column) -> Parts:
        """A step that decodes `sequences` sequences (of all groups together) with `context` cached tokens each."""
        group = np.ceil(sequences / self._shapes.layout.data_parallel)
        return self._parts(group, sequences, self.attend_decode(group, context), group)

    def prefill(self, tokens: Column, cached: Column | float = 0.0, sequences: Column | float = 1.0) -> Parts:
        """A step that computes `tokens` new tokens of each of `sequences` prompts after `cached` tokens each."""
        ones = np.ones_like(tokens) * sequences
        return self._parts(tokens * ones, tokens * ones, self.attend(tokens, cached, ones), ones)

    def tokens(self, tokens: Column) -> Parts:
        """What a step of so many tokens takes beside attention, as if each token were sampled."""
        group = np.ceil(tokens / self._shapes.layout.data_parallel)
        return self._parts(group, tokens, np.zeros_like(tokens), group)

    def attend_decode(self, sequences: Column, context: Column) -> Column:
        """Decode attention of all layers, and the state that layers without KV read and write."""
        attention = np.zeros_like(sequences)
        for kind in self._shapes.attention:
            seen = context if kind.window is None else np.minimum(context, kind.window)
            rows = self._heads(kind, sequences) | {"context": seen, "cold": np.ones_like(sequences)}
            rows["kv_elements"] = np.full_like(sequences, kind.kv_elements)
            rows["block"] = np.full_like(sequences, self._block)
            attention = attention + kind.layers * self._of(self._decode, rows)
        state = self._shapes.state_bytes_per_sequence * sequences / self._device.bandwidth_bytes_per_s
        return np.asarray(attention + state)

    def attend(self, tokens: Column, cached: Column | float, sequences: Column | float = 1.0) -> Column:
        """Prefill attention of all layers."""
        ones = np.ones_like(tokens) * sequences
        attention = np.zeros_like(tokens)
        for kind in self._shapes.attention:
            rows = self._heads(kind, ones) | {"tokens": tokens, "cached": cached * np.ones_like(tokens)}
            times = np.ones_like(tokens)
            if kind.window is not None:
                # A token meets at most `window` others: a long prompt is several of the window's length in a row.
                times = np.maximum(1.0, tokens / kind.window)
                rows["tokens"] = np.minimum(tokens, kind.window)
                rows["cached"] = np.minimum(rows["cached"], kind.window)
            attention = attention + kind.layers * times * self._of(self._prefill, rows)
        return attention

    def _heads(self, kind: object, sequences: Column) -> dict[str, Column]:
        full = np.ones_like(sequences)
        names = ("heads", "kv_heads", "head_dim")
        return {"sequences": sequences} | {name: full * getattr(kind, name) for name in names}

    def _parts(self, group_tokens: Column, all_tokens: Column, attention: Column, sampled: Column) -> Parts:
        shapes, layers = self._shapes, self._shapes.model.layers
        linear = np.zeros_like(group_tokens)
        for matrix in shapes.matrices:
            linear = linear + matrix.times * self._matrix(matrix, group_tokens)
        collectives = np.zeros_like(group_tokens)
        layout = shapes.layout
        if layout.gpus > 1:
            message = BF16_BYTES * shapes.model.hidden * (all_tokens if layout.data_parallel > 1 else group_tokens)
            rows = {"bytes": message, "ranks": np.full_like(message, float(min(layout.gpus, 8)))}
            calls = layers * ALL_REDUCES_PER_LAYER
            collectives = calls * self._of(self._all_reduce, rows)
        return Parts(
            linear=linear,
            experts=self._experts(all_tokens),
            attention=attention,
            collectives=collectives,
            head=self._matrix(shapes.head, sampled),
        )

    def _experts(self, tokens: Column) -> Column:
        model, layout = self._shapes.model, self._shapes.layout
        if not model.moe_layers:
            return np.zeros_like(tokens)
        full = np.ones_like(tokens)
        rows = {
            "tokens": tokens,
            "hidden": full * model.hidden,
            "intermediate": full * (model.moe_intermediate or 0),
            "experts": full * model.experts,
            "active": full * model.experts_active,
            "tensor_ranks": full * layout.expert_tensor,
            "expert_ranks": full * layout.expert_parallel,
            "drawn": full,
        }
        return model.moe_layers * self._of(self._shapes.experts_family, rows)

    def _matrix(self, matrix: Matrix, tokens: Column) -> Column:
        full = np.ones_like(tokens)
        return self._of(
            f"linear:{matrix.dtype}", {"m": tokens, "n": full * matrix.n, "k": full * matrix.k, "cold": full}
        )

    def _of(self, name: str, rows: dict[str, Column]) -> Column:
        own = stands_for(name, latent=self._shapes.model.kv_lora_rank is not None)
        if own is not None and own in self._parameters:
            name = own
        return family(name).seconds(self._parameters[name], rows, self._device)
