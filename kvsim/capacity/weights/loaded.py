"""The weights that each pipeline stage loads on one of its ranks, in bytes: what a start-up log prints as weights."""

from dataclasses import dataclass

from kvsim.capacity.weights.layers import Split, layer_weights
from kvsim.capacity.weights.quantization import PARTS, Scheme
from kvsim.catalog.models import Model
from kvsim.catalog.weights import EMBEDDING_BITS, dtype_bits

VOCAB_PADDING = 64
"""Rows to whose multiple engines pad the embedding tables before they split them (vLLM's VocabParallelEmbedding)."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What one pipeline stage holds on one rank: the range of its layers and its bytes of weights."""

    first_layer: int
    layers: int
    weight_bytes: int


def stage_layers(layers: int, stages: int) -> list[int]:
    """Layers of each stage, as vLLM deals them (`get_pp_indices`): evenly, what is left over to the stages before the
    last, from the back."""
    counts = [layers // stages] * stages
    for extra in range(layers % stages):
        counts[-2 - extra if stages > 1 else 0] += 1
    return counts


def loaded_weights(
    model: Model,
    *,
    dtype: str = "bf16",
    scheme: Scheme | None = None,
    ranks: int = 1,
    attention_ranks: int | None = None,
    stages: int = 1,
    whole_tables: bool = False,
) -> list[Stage]:
    """The weights of each stage on one rank.

    The embedding sits on the first stage and the head on the last (a tied table on both, where they are apart), split
    over the ranks by vocabulary; rotary tables are held whole by every rank. `whole_tables`: an engine that keeps the
    input tables whole on every rank of every stage, and the head in them. Raises InputError for a model whose
    weights are not known.
    """
    split = Split(ranks, attention_ranks or ranks)
    bits = dtype_bits(dtype)
    table = -(-model.vocab // VOCAB_PADDING) * VOCAB_PADDING * model.hidden
    table_bits = scheme.tables_bits if scheme is not None and scheme.tables_bits else max(bits, EMBEDDING_BITS)
    found, first = [], 0
    counts = stage_layers(model.layers, stages)
    for number, layers in enumerate(counts):
        total_bits = rope_elements(model) * float(min(bits, 32))
        for layer in range(first, first + layers):
            total_bits += _layer_bits(model, layer, split, bits, scheme)
        tables = 0
        if whole_tables:
            tables = (model.vocab + model.learned_positions) * model.hidden * ranks
        elif number == 0:
            tables += table + model.learned_positions * model.hidden * split.ranks
        if number == 0:
            total_bits += _other_elements(model, ranks) * max(bits, EMBEDDING_BITS)
        if number == stages - 1 and not whole_tables and not (model.tied_embeddings and stages == 1):
            tables += table
        total_bits += tables * table_bits / ranks
        found.append(Stage(first, layers, int(-(-total_bits // 8))))
        first += layers
    return found


def rope_elements(model: Model) -> int:
    """Elements of the rotary tables: a cosine and a sine for every position that the model was trained for."""
    if model.rope_elements is not None:
        return model.rope_elements
    if model.learned_positions:
        return 0
    rotary = model.qk_rope_head_dim if model.is_mla else model.head_dim
    return model.max_context * (rotary or 0)


def _other_elements(model: Model, ranks: int) -> float:
    return round((model.other_params_b or 0) * 1e9) / ranks


def _layer_bits(model: Model, layer: int, split: Split, bits: int, scheme: Scheme | None) -> float:
    touched = scheme is not None and scheme.ends <= layer < model.layers - scheme.ends
    parts = layer_weights(model, layer, split, scheme.pad if scheme is not None else None)
    total = float(parts["whole"] * bits)
    for part in PARTS:
        small = scheme is not None and touched and part in scheme.quantized
        total += parts[part] * (scheme.weight_bits if scheme is not None and small else bits)
    return total
