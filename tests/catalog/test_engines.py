"""An engine profile says which rules it runs and where it differs from the engine."""

import pytest

from kvsim.catalog.engines import profile, profiles
from kvsim.errors import InputError


def test_vllm_sync_has_the_defaults_of_the_release() -> None:
    vllm = profile("vllm@0.33-sync")
    assert (vllm.engine, vllm.version, vllm.scheduler) == ("vllm", "0.33", "continuous")
    assert (vllm.pipeline_depth, vllm.block_size, vllm.allocator) == (1, 16, {"name": "paged"})
    assert (vllm.max_num_seqs, vllm.max_num_batched_tokens) == (256, 2048)
    assert (vllm.chunked_prefill, vllm.long_prefill_token_threshold) == (True, 0)
    assert (vllm.reserve_full_isl, vllm.watermark, vllm.preemption) == (True, 0.0, "recompute")
    assert vllm.gpu_memory_utilization == 0.92


def test_prefix_caching_off_is_declared_as_a_deviation() -> None:
    vllm = profile("vllm@0.33-sync")
    assert not vllm.prefix_caching
    assert any("Prefix caching is on by default" in sentence for sentence in vllm.known_deviations)


def test_every_profile_has_a_source_and_says_what_differs_in_sentences() -> None:
    assert profiles()
    for known in profiles():
        assert known.description
        assert known.source
        assert all(sentence.endswith(".") for sentence in known.known_deviations)
        assert 0 < known.gpu_memory_utilization <= 1
        assert known.max_num_batched_tokens >= known.max_num_seqs


@pytest.mark.parametrize("written", ["vLLM@0.33-sync", "vllm 0.33 sync"])
def test_case_and_punctuation_do_not_matter(written: str) -> None:
    assert profile(written).name == "vllm@0.33-sync"


def test_an_unknown_profile_gets_the_closest() -> None:
    with pytest.raises(InputError, match=r"unknown engine profile 'vllm@0.34': the closest are vllm@0.33, vllm@0.2"):
        profile("vllm@0.34")
