"""What prefix caching changes in the results of a run: hits, hits after preemption, what is cached."""

import json
from functools import cache

import pytest

from kvsim import Scenario, run
from kvsim.content import LAYERS
from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.reporting.comparison import comparison_table, waste_share
from kvsim.study.diagnosis.pressures import shortage_of
from kvsim.workload.trace import TraceTraffic
from tests.naive_residency import heard

BASE = {"model": "llama-3.1-8b", "gpu": "H100", "pool": {"tokens": 32_000}}
TRAFFIC = {"rate": "4/s", "requests": 40, "prompt_tokens": 1000, "output_tokens": 64, "prefix": {"tokens": 512}}


def result(cached=True, check=True, allocator=None, **changes):
    allocator = allocator or {"name": "paged", "prefix_caching": cached}
    name = "cached" if cached else "paged"
    return run(
        Scenario.from_dict(BASE | {"allocator": allocator, "workload": TRAFFIC} | changes, name=name), check=check
    )


@cache
def mooncake(tokens):
    """The packaged conversations with a pool of so many tokens, once for all who look at them."""
    return result(check=False, pool={"tokens": tokens}, workload={"trace": "mooncake-conversation"})


def test_all_but_the_first_request_find_the_system_prompt():
    found = result()
    assert found.requests["hit_tokens"].tolist() == [0] + [512] * 39
    metrics = found.metrics
    assert metrics["hit_tokens"] == 39 * 512
    assert metrics["hit_rate"] == pytest.approx(39 * 512 / 40_000)
    assert metrics["rehit_tokens"] == metrics["recomputed_tokens"] == 0
    assert metrics["duplicate_share"] is None


def test_what_is_found_is_not_computed():
    plain, cached = result(cached=False), result()
    saved = plain.steps["prefill_tokens"].sum() - cached.steps["prefill_tokens"].sum()
    assert saved == cached.metrics["hit_tokens"]
    assert plain.metrics["hit_rate"] is None
    assert plain.metrics["hit_tokens"] == 0


def test_blocks_stay_cached_between_requests_and_are_no_waste():
    found = result(workload=TRAFFIC | {"rate": "0.1/s"})
    memory = found.memory
    idle = memory[(memory["running"] == 0) & (memory["time_s"] > 0)]
    # The system prompt once, and of every request the full blocks of the rest and of its output but the last token.
    assert ((idle["cached"] - 512) % (1063 // 16 * 16 - 512) == 0).all()
    assert idle["cached"].iloc[-1] == 512 + 40 * (1063 // 16 * 16 - 512)
    assert (idle["cached"] + idle["free"] == 32_000).all()
    assert found.metrics["mean_share"]["cached"] > 0.4
    share = found.metrics["mean_share"]
    unwritten = share["reserved"] + share["internal"]
    assert waste_share(found.metrics) == pytest.approx(unwritten / (share["used"] + unwritten))


def test_what_a_preempted_request_finds_of_its_own_counts_apart():
    tight = {"pool": {"tokens": 4_000}, "workload": TRAFFIC | {"rate": "50/s", "output_tokens": 600}}
    metrics = result(**tight).metrics
    assert metrics["preemptions"] > 0
    assert metrics["rehit_tokens"] > 0
    assert metrics["recomputed_tokens"] <= metrics["lost_tokens"]
    assert metrics["hit_rate"] == metrics["hit_tokens"] / 40_000
    assert metrics["upkeep"]["evictions"] > 0


def test_samples_of_one_prompt_find_what_the_first_has_computed():
    traffic = TRAFFIC | {"samples": 3, "requests": 5}
    del traffic["prefix"]
    # 1,000 tokens are 62 full blocks; the two further samples find them as soon as they are planned.
    assert result(workload=traffic).requests["hit_tokens"].tolist() == [2 * 992] * 5


def test_with_room_for_everything_a_trace_finds_what_an_endless_cache_holds():
    seen, hit_tokens, asked_tokens = set(), 0, 0
    for content in TraceTraffic("mooncake-conversation", identities=True).contents():
        before, going = (), True
        for block in range(content.tokens // 16):
            before = hash((before, content.part(block * 16, block * 16 + 16)))
            # The last token of a prompt is computed in any case.
            going = going and before in seen and (block + 1) * 16 < content.tokens
            seen.add(before)
            hit_tokens += 16 * going
        asked_tokens += content.tokens
    found = mooncake(10_000_000)
    assert found.metrics["hit_tokens"] == hit_tokens > 700_000
    assert found.metrics["hit_rate"] == hit_tokens / asked_tokens
    assert any("in blocks of 512 tokens" in note for note in found.notes)


def test_a_trace_without_identities_says_that_nothing_is_shared():
    found = result(check=False, workload={"trace": "azure-conv-2023", "requests": 20})
    assert found.metrics["hit_rate"] == 0
    assert any("does not say which prompts begin alike" in note for note in found.notes)


def radix(**changes):
    return result(**changes, allocator="radix")


def test_a_tree_finds_the_system_prompt_and_what_blocks_of_16_cannot_tell_apart():
    traffic = TRAFFIC | {"prefix": {"tokens": 520}, "rate": "1/s"}
    blocks, tokens = result(workload=traffic), radix(workload=traffic)
    assert blocks.requests["hit_tokens"].tolist() == [0] + [512] * 39
    assert tokens.requests["hit_tokens"].tolist() == [0] + [520] * 39
    assert radix(workload=traffic, check=False).metrics == tokens.metrics


def test_a_tree_keeps_all_that_was_computed_while_there_is_room():
    found = radix(workload=TRAFFIC | {"rate": "0.1/s"}, pool={"tokens": 100_000})
    memory = found.memory
    idle = memory[(memory["running"] == 0) & (memory["time_s"] > 0)]
    # The system prompt once, and of every request the rest and its output but the last token.
    assert ((idle["cached"] - 512) % (1063 - 512) == 0).all()
    assert idle["cached"].iloc[-1] == 512 + 40 * (1063 - 512)
    assert (idle["cached"] + idle["free"] == 100_000).all()
    assert found.metrics["upkeep"]["evictions"] == 0


def test_samples_that_start_together_are_computed_each_where_nothing_is_found_before_its_step_is_over():
    traffic = {**TRAFFIC, "samples": 3, "requests": 5, "rate": "1/s"}
    del traffic["prefix"]
    engine = {"max_num_batched_tokens": 3000}
    found = radix(workload=traffic, engine=engine)
    assert found.requests["hit_tokens"].tolist() == [0] * 5
    assert result(workload=traffic, engine=engine).requests["hit_tokens"].tolist() == [2 * 992] * 5
    # Two of the three copies come free when it is.
    assert found.metrics["saved_share"] > 0
    assert any("SGLang computes the prompt of several samples once" in line for line in found.not_modelled)


def test_what_a_tree_evicts_is_told_in_tokens_as_blocks_are():
    tight = {"pool": {"tokens": 4_000}, "workload": TRAFFIC | {"rate": "50/s", "output_tokens": 600}}
    results = [result(**tight), radix(**tight)]
    groups = {group.heading: group for group in comparison_table(results)}
    evicted = next(row for row in groups["Prefixes found cached, p50 / p99"].rows if row.label == "evicted")
    counts = [found.metrics["upkeep"]["evictions"] for found in results]
    assert evicted.unit == "tokens"
    assert evicted.values == ((16 * counts[0],), (counts[1],))
    assert min(counts) > 0
    assert results[1].metrics["rehit_tokens"] > 0


def test_the_table_has_hits_where_some_run_caches():
    headings = {group.heading: group for group in comparison_table([result(cached=False), result()])}
    texts = {row.label: (row.text(0), row.text(1)) for row in headings["Prefixes found cached, p50 / p99"].rows}
    assert texts["hit rate"] == ("-", "49.9")
    assert texts["not computed"] == ("0", "19,968")
    assert "Prefixes found cached, p50 / p99" not in {
        group.heading for group in comparison_table([result(cached=False)])
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"allocator": {"prefix_caching": True}},
        {"allocator": "radix"},
        {"engine": {"profile": "sglang@0.5.23", "max_model_len": 4096}},
    ],
    ids=["blocks", "tree", "sglang"],
)
def test_addresses_are_recorded_of_what_runs_by_request_and_of_what_is_cached_as_nobodys(settings):
    scenario = Scenario.from_dict(BASE | settings | {"workload": TRAFFIC}, name="here")
    found = run(scenario, addresses=True).addresses
    assert set(found["class"]) >= {"used", "cached"}
    assert found[found["class"] == "cached"]["request"].isna().all()
    assert found[found["class"] == "used"]["request"].notna().all()


# What is found, how long it stays, and what is wanted after it has gone.


def layer(found, name):
    return found.metrics["hit_tokens_by_layer"][name]


def test_hits_are_told_by_layer_of_sharing_for_the_run_and_for_each_request():
    one, several = result(), result(workload=TRAFFIC | {"prefix": {"tokens": 512, "groups": 2}})
    assert one.metrics["hit_tokens_by_layer"] == dict.fromkeys(LAYERS, 0) | {"system": 39 * 512}
    assert several.metrics["hit_tokens_by_layer"] == dict.fromkeys(LAYERS, 0) | {"group": 38 * 512}
    for found in (one, several):
        for name in LAYERS:
            assert found.requests[f"hit_{name}_tokens"].sum() == layer(found, name)


def test_what_a_sample_or_a_request_that_comes_back_finds_of_its_own_is_own():
    traffic = TRAFFIC | {"samples": 3, "requests": 5}
    found = result(workload=traffic)
    # The system prompt is the first two samples' as well; of their own the rest of the 62 full blocks.
    assert layer(found, "own") == 5 * 2 * (992 - 512)
    assert layer(found, "system") == (5 * 3 - 1) * 512
    tight = {"pool": {"tokens": 4_000}, "workload": TRAFFIC | {"rate": "50/s", "output_tokens": 600}}
    metrics = result(**tight).metrics
    assert sum(metrics["rehit_tokens_by_layer"].values()) == metrics["rehit_tokens"]
    assert metrics["rehit_tokens_by_layer"]["own"] > 0


def test_the_first_block_of_every_mooncake_conversation_is_the_systems():
    found = mooncake(10_000_000)
    requests = found.requests
    assert (requests["hit_system_tokens"].iloc[1:] == 512).all()
    assert layer(found, "unknown") == found.metrics["hit_tokens"] - layer(found, "system") > 0
    assert found.metrics["regret_tokens"] == found.metrics["upkeep"]["evictions"] == 0
    assert found.metrics["idle_before_evict_s"] is found.metrics["cached_lifetime_s"] is None
    assert found.metrics["reuse_gap_s"]["max"] > 0


def test_what_a_smaller_pool_misses_was_cached_once():
    large, small = mooncake(10_000_000), mooncake(200_000)
    # Whoever comes at once finds what is still being computed in both; all else that is missed was evicted.
    missed = large.metrics["hit_tokens"] - small.metrics["hit_tokens"]
    assert small.metrics["regret_tokens"] == small.requests["regret_tokens"].sum() == missed > 0
    assert small.metrics["regret_rate"] == missed / small.requests["prompt_tokens"].sum()
    idle, life = small.metrics["idle_before_evict_s"], small.metrics["cached_lifetime_s"]
    assert 0 < idle["mean"] <= life["mean"] <= life["max"] <= small.metrics["simulated_s"]


def test_reuse_lies_within_the_pool_and_further_apart_than_the_pool_is_regret():
    large, small = mooncake(10_000_000), mooncake(200_000)
    assert small.metrics["reuse_distance_tokens"]["p50"] < 200_000 < large.metrics["reuse_distance_tokens"]["max"]


@pytest.mark.parametrize("settings", [{"allocator": "radix"}, {"engine": {"profile": "sglang@0.5.23"}}])
def test_what_a_tree_has_evicted_and_somebody_wanted_is_not_known_and_not_said_to_be_nothing(settings, tmp_path):
    """Evicted edges would come back as other ones: the pool is far too small for the shared prefixes, and yet."""
    small = {"pool": {"tokens": 4_000}, "workload": TRAFFIC | {"prefix": {"tokens": 512, "groups": 8}}}
    found = run(Scenario.from_dict(BASE | settings | small, name="tree"))
    assert found.metrics["upkeep"]["evictions"] > 0
    assert found.metrics["regret_tokens"] is found.metrics["regret_rate"] is None
    assert found.requests["regret_tokens"].isna().all()
    rows = {row.label: row.text(0) for group in comparison_table([found]) for row in group.rows}
    assert rows["evicted, then wanted"] == "-"
    assert (shortage_of(found).regret_tokens, shortage_of(found).regret_rate) == (None, None)
    found.save(tmp_path)
    again = Result.load(tmp_path)
    assert again.metrics["regret_tokens"] is None
    assert again.requests["regret_tokens"].isna().all()


@pytest.mark.parametrize("key", ["hit_tokens_by_layer", "rehit_tokens_by_layer", "regret_tokens", "regret_rate"])
def test_without_a_cache_the_keys_are_there_and_empty(key):
    assert result(cached=False).metrics[key] is None


def test_kv_events_are_kept_where_somebody_asks_and_go_through_a_folder(tmp_path):
    scenario = Scenario.from_dict(
        BASE | {"allocator": {"name": "paged", "prefix_caching": True}, "workload": TRAFFIC}, name="here"
    )
    plain, found = run(scenario), run(scenario, kv_events=True)
    assert plain.metrics == found.metrics
    with pytest.raises(ValueError, match="KV events were not recorded"):
        plain.kv_event_lines()
    router = heard(found.kv_events)
    assert router.contents.total() * 16 == found.memory["cached"].iloc[-1] > 0
    found.save(tmp_path)
    assert list(Result.load(tmp_path).kv_events) == list(found.kv_events)
    lines = (tmp_path / "kv_events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == list(found.kv_events)
    plain.save(tmp_path)
    assert not (tmp_path / "kv_events.jsonl").exists()
    assert Result.load(tmp_path).kv_events is None


def test_kv_events_without_a_cache_are_refused():
    with pytest.raises(InputError, match=r"this run has none; set allocator\.prefix_caching: true"):
        run(Scenario.from_dict(BASE | {"workload": TRAFFIC}, name="here"), kv_events=True)


def test_the_table_says_where_hits_come_from_and_what_is_evicted():
    small = mooncake(200_000)
    headings = {group.heading: group for group in comparison_table([small])}
    rows = {row.label: row.text(0) for row in headings["Prefixes found cached, p50 / p99"].rows}
    assert rows["  of it system"] == f"{layer(small, 'system'):,}"
    assert "  of it session" not in rows
    assert rows["evicted, then wanted"] == f"{small.metrics['regret_tokens']:,}"
    assert all(" / " in rows[label] for label in ("reuse distance", "between two uses", "idle before evicted"))
