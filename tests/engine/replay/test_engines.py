"""Any vLLM case: the two engines that can follow it say the same, and the pool adds up at every step."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from kvsim.engine.replay.vllm import engines_for, replay_vllm
from kvsim.engine.replay.vllm.by_request import RequestEngine
from kvsim.engine.replay.vllm.drive import records
from kvsim.engine.replay.vllm.settings import settings_of
from kvsim.engine.replay.vllm.truth import truths_of
from tests.effort import examples

LONGEST = 40


@st.composite
def plain_config(draw):
    """Settings that both engines follow; the pool holds the longest request."""
    size = draw(st.sampled_from([1, 2, 4, 5]))
    return {
        "num_blocks": 1 + -(-LONGEST // size) + draw(st.integers(0, 25)),
        "block_size": size,
        "max_num_seqs": draw(st.integers(1, 8)),
        "max_num_batched_tokens": draw(st.integers(8, 60)),
        "max_model_len": LONGEST,
        "enable_prefix_caching": draw(st.booleans()),
        "long_prefill_token_threshold": draw(st.sampled_from([0, 0, 5])),
        "watermark": draw(st.sampled_from([0, 0, 0.1])),
        "reserve_full_isl": draw(st.booleans()),
        "max_steps": 500,
    }


@st.composite
def any_config(draw):
    """Anything that vLLM's settings may say, groups of layers included."""
    config = draw(plain_config())
    windows = st.builds(lambda window: {"kind": "sliding", "window": window}, st.integers(1, 20))
    groups = draw(st.lists(st.one_of(st.just({"kind": "full"}), windows), min_size=1, max_size=3))
    config |= {
        "num_blocks": config["num_blocks"] + len(groups) * (-(-LONGEST // config["block_size"]) + 1),
        "max_num_active_seqs": draw(st.sampled_from([None, 3])),
        "long_prefill_adaptive": draw(st.booleans()),
        "policy": draw(st.sampled_from(["fcfs", "priority"])),
        "async_scheduling": draw(st.booleans()),
        "prefill_schedule_interval": draw(st.sampled_from([1, 1, 3])),
        "groups": groups,
        "spec": draw(st.sampled_from([None, None, {"k": 2, "lookahead": True}, {"k": 3}])),
    }
    if any(group["kind"] == "sliding" for group in groups):
        config["retention_interval"] = draw(st.sampled_from([0, None, 2 * config["block_size"]]))
    return config


@st.composite
def requests(draw):
    """Prompts that share heads, quote earlier outputs, arrive in bursts, and sometimes give up."""
    made = []
    for number in range(draw(st.integers(1, 9))):
        prompt = [{"s": draw(st.integers(1, 2)), "n": draw(st.integers(1, 15))}]
        if made and draw(st.booleans()):
            quoted = draw(st.integers(0, number - 1))
            prompt = [*made[quoted]["prompt"], {"s": 1_000_000 + quoted, "n": draw(st.integers(1, 4))}]
        if sum(segment["n"] for segment in prompt) > LONGEST - 12:
            prompt = [{"s": 3, "n": LONGEST - 12}]
        entry = {
            "id": f"r{number}",
            "arrival_step": draw(st.integers(0, 12)),
            "prompt": prompt,
            "output_len": draw(st.integers(1, 15)),
            "priority": draw(st.integers(0, 2)),
            "accept": draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)),
        }
        if draw(st.integers(0, 5)) == 0:
            entry["abort_step"] = draw(st.integers(0, 25))
        made.append(entry)
    return made


@settings(max_examples=examples(150), deadline=None)
@given(plain_config(), requests())
def test_two_engines_one_record(config, asked):
    assert len(engines_for(settings_of(config))) == 2
    case = {"config": config, "requests": asked}
    one, other = (list(replay_vllm(case, engine=engine)) for engine in (0, 1))
    assert one == other


@settings(max_examples=examples(150), deadline=None)
@given(any_config(), requests())
def test_whatever_is_set_every_block_is_accounted_for_and_every_request_ends(config, asked):
    case = settings_of(json.loads(json.dumps(config)))
    engine = RequestEngine(case)
    truths = truths_of(asked, LONGEST)
    lines = records(engine, truths, case["max_steps"])
    scheduler, pool = engine.scheduler, engine.pool
    for line in lines:
        holdings = [request.holding for request in scheduler.running]
        pool.audit(table for holding in holdings for table in holding.tables)
        if "step" in line:
            assert sum(tokens for _, tokens in line["sched"]) <= case["max_num_batched_tokens"]
            assert line["used_after_schedule"] + line["free_after_schedule"] == case["num_blocks"] - 1
            assert len(line["running"]) <= min(
                case["max_num_seqs"], case["max_num_active_seqs"] or case["max_num_seqs"]
            )
    assert pool.free_blocks == pool.blocks
    assert not engine.busy
    for truth in truths:
        assert truth.done is not None or truth.abort_step is not None
        assert truth.output == truth.allowed or truth.abort_step is not None
        if not case["spec"] and truth.done is not None and not truth.preempted:
            assert truth.computed + sum(truth.hits) == truth.prompt + truth.output - 1
