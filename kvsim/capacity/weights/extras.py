"""What is loaded beside the model: a draft model, adapter slots."""

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.weights.layers import Split, layer_weights
from kvsim.capacity.weights.loaded import loaded_weights
from kvsim.catalog.models import Model


def extra_weight_bytes(deployment: Deployment) -> int:
    """Bytes on one rank of the draft model and the adapter slots."""
    extra = 0
    if deployment.draft is not None:
        [stage] = loaded_weights(deployment.draft, dtype=deployment.dtype, ranks=deployment.draft_ranks)
        extra += stage.weight_bytes
    if deployment.lora_slots:
        elements = _adapter_elements(deployment.model, deployment.lora_rank, deployment.tensor_parallel)
        extra += deployment.lora_slots * elements * deployment.number_bytes // deployment.pipeline_parallel
    return extra


def _adapter_elements(model: Model, rank: int, ranks: int) -> int:
    """Numbers of one adapter of that rank on a rank of the engine: r x (in + out) for each projection of every layer
    (LoRA, arXiv 2106.09685 section 4.1); the side that tensor parallelism splits is split here too."""
    hidden, width = model.hidden, -(-(model.intermediate or 0) // ranks)
    own = layer_weights(model, 0, Split(ranks, ranks))["attention"]
    attention = 4 * hidden + own // max(1, hidden)
    mlp = (3 if model.gated_mlp else 2) * (hidden + width)
    return model.layers * rank * (attention + mlp)
