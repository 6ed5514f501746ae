"""Where each number of a plan comes from, and what a plan leaves out."""

from kvsim.capacity.deployment import Deployment
from kvsim.capacity.engines.interface import EnginePolicy
from kvsim.capacity.overheads.estimate import nearest_starts
from kvsim.capacity.overheads.releases import overheads


def provenance(deployment: Deployment, rules: EnginePolicy) -> dict[str, str]:
    """Part to source: given, or the rule or log that the default stands on."""
    given, data = deployment.given, overheads()
    scheme = deployment.scheme
    card = deployment.gpu
    estimates = {
        "weights": "counted from the model's fields"
        + (f"; {scheme.name}: {scheme.source}" if scheme is not None else f" in {deployment.dtype}"),
        "activation": f"estimated: {data['samplers'][deployment.engine.rules['sampler']]['source']}",
        "non_torch": f"estimated: the median of the nearest logged starts: {_starts(deployment)}",
        "cuda_graphs": f"estimated: {data['graphs']['source']}",
    }
    if deployment.enforce_eager or deployment.engine.engine == "llama.cpp":
        estimates["cuda_graphs"] = "none are captured"
    said = {part: "given" if getattr(given, part) is not None else text for part, text in estimates.items()}
    said["total"] = "given" if card is None else f"{card.name}: {card.source_memory}"
    said["policy"] = f"{deployment.engine.name}: {rules.rule} ({deployment.engine.rules['source']})"
    if given.kv_memory is not None:
        said["kv"] = "given"
    if given.num_gpu_blocks is not None:
        said["blocks"] = "given"
    return said


def _starts(deployment: Deployment) -> str:
    starts = nearest_starts(deployment)
    kinds = dict.fromkeys(f"{one['engine']}@{one['release']} on {one['gpu'] or 'other cards'}" for one in starts)
    return f"{', '.join(kinds)} ({len(starts)})"


def not_modelled(deployment: Deployment) -> tuple[str, ...]:
    """Sentences for every output."""
    said = ["Norms, biases and quantisation scales of whole channels: under 0.1 % of the weights."]
    if deployment.model.other_params_b:
        said.append("The cache of the multimodal encoder, and the peak of a step of the encoder itself.")
    if deployment.model.window_layers and deployment.engine.engine != "vllm":
        said.append(
            f"Shorter caches of layers with a window, as late releases of {deployment.engine.engine} keep them: every "
            "layer is charged for every token."
        )
    if deployment.model.state_layers:
        said.append("States kept for prefix caching beyond what a running request holds.")
    if deployment.scheme is not None and deployment.scheme.quantized != ("experts",):
        said.append("Workspaces of quantised kernels.")
    if deployment.draft is not None:
        said.append("The draft model's activations, and CUDA graphs of its own.")
    if deployment.swap_bytes and deployment.engine.number >= (0, 8) and deployment.engine.engine == "vllm":
        said.append("Swap space: vLLM from 0.8 on recomputes what it preempts and leaves it unused.")
    if deployment.lora_slots:
        said.append("Buffers of the adapter kernels.")
    if deployment.tensor_parallel > 1:
        said.append("Differences between ranks of one stage: they are taken to be alike, logs differ by under 1.2 %.")
    return tuple(said)
