"""How each engine gets from its share of the card to blocks of KV: one file a policy, chosen by the release."""

from kvsim.capacity.engines.distserve import DistServe
from kvsim.capacity.engines.interface import EnginePolicy
from kvsim.capacity.engines.llamacpp import LlamaCpp
from kvsim.capacity.engines.sglang import SGLang
from kvsim.capacity.engines.trtllm import TensorRtLlm
from kvsim.capacity.engines.vllm import Vllm
from kvsim.capacity.engines.vllm_first import VllmFirst
from kvsim.capacity.engines.vllm_graphs import VllmGraphs
from kvsim.capacity.overheads.releases import Release

_POLICIES: dict[str, EnginePolicy] = {
    policy.name: policy
    for policy in (Vllm(), VllmFirst(), VllmGraphs(), SGLang(), TensorRtLlm(), DistServe(), LlamaCpp())
}


def policy(release: Release) -> EnginePolicy:
    """The policy of a release."""
    return _POLICIES[release.rules["policy"]]


__all__ = ["EnginePolicy", "policy"]
