"""From a checked scenario to the parts of a run: settings arrive where they are used, defaults are the profile's."""

from typing import Any

import pytest

from kvsim import Scenario
from kvsim.catalog.engines import profile
from kvsim.errors import DoesNotFitError, InputError
from kvsim.memory.contiguous import ContiguousAllocator
from kvsim.memory.paged import PagedAllocator
from kvsim.memory.reserve import ReserveAllocator
from kvsim.scenario import load
from kvsim.scenario.build import Simulation, build

TRAFFIC = {"rate": "4/s", "requests": 10, "prompt_tokens": 500, "output_tokens": 100}
DEFAULT = {"model": "llama-3.1-8b", "gpu": "RTX 4090", "pool": {"tokens": 41408}, "workload": TRAFFIC}


def built(seed: int = 0, without: str = "", **changes: Any) -> Simulation:
    data = {key: value for key, value in (DEFAULT | changes).items() if key != without}
    return build(Scenario.from_dict(data, name="here"), seed)


@pytest.mark.parametrize(
    ("allocator", "kind", "settings"),
    [
        ("paged", PagedAllocator, {"block_size": 16, "watermark_blocks": 0}),
        ({"name": "paged", "block_size": 64}, PagedAllocator, {"block_size": 64}),
        ({"name": "paged", "watermark": 0.1}, PagedAllocator, {"watermark_blocks": 258}),
        ("contiguous", ContiguousAllocator, {"chunk": 256}),
        ({"name": "contiguous", "chunk": 512}, ContiguousAllocator, {"chunk": 512}),
        ("reserve", ReserveAllocator, {"max_model_len": 131072}),
    ],
)  # fmt: skip
def test_a_name_becomes_the_allocator_with_its_options(allocator, kind, settings):
    made = built(allocator=allocator).scheduler.allocator
    assert type(made) is kind
    assert {name: getattr(made, name) for name in settings} == settings


def test_reserve_reserves_the_engines_limit():
    made = built(allocator="reserve", engine={"max_model_len": 8192}).scheduler.allocator
    assert made.capacity(1) == 8192


@pytest.mark.parametrize(
    ("pool", "allocator", "slots"),
    [
        ({"blocks": 2588}, "paged", 2588 * 16),
        ({"blocks": 100}, {"name": "paged", "block_size": 32}, 3200),
        ({"blocks": 100}, "contiguous", 1600),  # of the profile's block size
        ({"tokens": 41408}, "reserve", 41408),
        ({"tokens": 100}, "paged", 96),  # whole blocks
        ({"tokens": 100}, "contiguous", 100),
        ({"memory": "5GiB"}, "paged", 40960),  # of 131,072 B a token
        ({"memory": "5GiB"}, "contiguous", 40960),
    ],
)
def test_a_pool_given_in_any_of_three_ways_has_the_slots_it_says(pool, allocator, slots):
    assert built(pool=pool, allocator=allocator).scheduler.allocator.pool_slots == slots


def test_memory_for_kv_is_per_rank():
    simulation = built(pool={"memory": "5GiB"}, tensor_parallel=2)
    assert simulation.bytes_per_slot == 65536
    assert simulation.scheduler.allocator.pool_slots == 81920


def test_without_a_pool_it_follows_from_the_card_and_the_planned_start():
    # 0.92 x 25,250,627,584 B less 16,093,544,448 B of weights and 0.55 + 0.57 + 0.46 GiB of overheads: 2,596 blocks.
    simulation = built(without="pool")
    assert simulation.scheduler.allocator.pool_slots == 2596 * 16
    assert simulation.provenance["pool"].startswith("from the card")


def test_the_cards_budget_can_be_changed():
    budget = {"gpu_memory_utilization": 0.9, "activation": "0B", "non_torch": "0B", "cuda_graphs": "0B"}
    assert built(without="pool", capacity=budget).scheduler.allocator.pool_slots == 3162 * 16


def test_a_model_that_does_not_fit_its_card_is_refused_with_the_breakdown():
    with pytest.raises(DoesNotFitError, match=r"llama-3\.1-70b does not fit: .*weights 131\.45 GiB"):
        built(without="pool", model="llama-3.1-70b")


def test_what_the_scenario_leaves_open_is_the_profiles():
    rules = profile("vllm@0.33-sync")
    scheduler = built().scheduler
    for name in (
        "max_num_seqs",
        "max_num_batched_tokens",
        "chunked_prefill",
        "long_prefill_token_threshold",
        "reserve_full_isl",
    ):
        assert getattr(scheduler, name) == getattr(rules, name), name


def test_what_the_scenario_says_beats_the_profile_even_when_it_is_false_or_zero():
    engine = {
        "max_num_seqs": 7,
        "max_num_batched_tokens": 9000,
        "chunked_prefill": False,
        "long_prefill_token_threshold": 0,
        "reserve_full_isl": False,
        "max_model_len": 8192,
    }
    simulation = built(engine=engine)
    limit = engine.pop("max_model_len")
    assert {name: getattr(simulation.scheduler, name) for name in engine} == engine
    assert simulation.max_model_len == limit


def test_the_limit_is_what_the_model_was_trained_for_where_nobody_gives_one():
    assert built().max_model_len == 131072


def test_parameters_of_the_timing_reach_it():
    slow = built(timing={"name": "roofline", "weights_bandwidth_efficiency": 0.4})
    assert slow.timing.decode(1)[0] > 1.5 * built().timing.decode(1)[0]


def test_goals_reach_the_summary_in_picoseconds():
    slo = built(slo={"ttft": "5s", "tpot": "100ms"}).slo
    assert (slo.ttft_ps, slo.tpot_ps, slo.e2e_ps) == (5 * 10**12, 10**11, None)


def test_only_blocks_have_a_block_size():
    assert built().block_size == 16
    assert built(allocator="contiguous").block_size is None


def test_allocators_are_made_afresh_for_each_run():
    scenario = Scenario.from_dict(DEFAULT)
    assert build(scenario, 0).scheduler.allocator is not build(scenario, 0).scheduler.allocator


def test_the_same_seed_brings_the_same_requests_and_another_seed_others():
    lengths = {"prompt_tokens": {"distribution": "uniform", "min": 1, "max": 1000}}
    one, same, other = (list(built(seed, workload=TRAFFIC | lengths).workload) for seed in (1, 1, 2))
    assert one == same
    assert [request.arrival_ps for request in one] != [request.arrival_ps for request in other]
    assert [request.prompt_tokens for request in one] != [request.prompt_tokens for request in other]


def test_a_changed_allocator_leaves_the_requests_untouched():
    requests = [list(built(allocator=name).workload) for name in ("paged", "contiguous", "reserve")]
    assert requests[0] == requests[1] == requests[2]


@pytest.mark.parametrize("key", ["timing", "pool", "engine", "workload"])
def test_every_family_of_numbers_has_its_provenance(key):
    assert built().provenance[key]


def test_an_oracle_is_called_one():
    workload = TRAFFIC | {"max_tokens": {"times_output": 1.5}}
    assert "oracle" in built(workload=workload).provenance["workload"]
    assert "oracle" not in built().provenance["workload"]


def test_a_stretched_trace_says_so():
    simulation = built(workload={"trace": "azure-conv-2023", "rate": "3/s"})
    assert simulation.provenance["workload"] == "trace azure-conv-2023, time stretched to 3 requests/s"


def said(simulation: Simulation, words: str) -> bool:
    return any(words in sentence for sentence in simulation.not_modelled)


def test_what_is_left_out_is_said_in_sentences():
    assert all(sentence.endswith(".") for sentence in built().not_modelled)
    for deviation in profile("vllm@0.33-sync").known_deviations:
        assert deviation in built().not_modelled


def test_that_the_allocators_own_time_is_free_is_said_of_paged_alone():
    assert said(built(), "The allocator's own time")
    assert not said(built(allocator="contiguous"), "The allocator's own time")


def test_windows_and_states_that_are_not_modelled_are_said_of_the_models_that_have_them():
    limit = {"max_model_len": 8192}
    assert said(built(model="gpt-oss-20b", engine=limit), "the 12 window layers of gpt-oss-20b keep and read the whole")
    assert said(built(model="qwen3-next-80b-a3b", engine=limit), "the 36 state layers of qwen3-next-80b-a3b take no")
    assert not said(built(), "window layers")
    assert not said(built(), "state layers")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pool": {"memory": "1B"}, "allocator": "contiguous"}, "here: pool.memory: 1 B holds no token"),
        ({"pool": {"tokens": 15}}, "here: pool.tokens: allocator paged: pool_slots is 15"),
        ({"without": "pool", "capacity": {"gpu_memory_utilization": 0}},
         "here: capacity.gpu_memory_utilization: gpu_memory_utilization is 0"),
        ({"workload": TRAFFIC | {"arrivals": {"process": "gamma", "cv": 1e9}}},
         "here: workload.arrivals.cv: cv: gaps this uneven"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_an_input_error_that_names_the_scenario_and_the_key(changes, message):
    with pytest.raises(InputError, match=message.replace(".", r"\.")) as error:
        built(**changes)
    assert error.value.exit_code == 2


def test_a_model_whose_weights_are_not_known_is_refused_by_name():
    with pytest.raises(InputError, match="kimi-k3: params_total_b is not known"):
        built(model="kimi-k3")


def test_what_only_building_finds_is_told_with_file_line_and_key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(
        "model: llama-3.1-8b\ngpu: RTX 4090\npool:\n  tokens: 15\nworkload:\n"
        "  {rate: 4/s, requests: 10, prompt_tokens: 500, output_tokens: 100}\n"
    )
    with pytest.raises(InputError, match=r"^s\.yaml:4: pool\.tokens: allocator paged: pool_slots is 15; the pool must"):
        build(load("s.yaml"), 0)


def test_a_pool_larger_than_its_card_is_noted_and_one_that_may_fit_is_not():
    # 25,250,627,584 B less 16,059,990,016 B of weights: 8.56 GiB, 70,119 tokens of 131,072 B.
    assert built(pool={"tokens": 41_408}).notes == []  # what a real start-up logged
    [short] = built(pool={"tokens": 70119}).notes
    assert short.startswith("Beside weights, pool and 1.03 GiB of overheads RTX-4090 has 0 B for the workspace")
    assert built(pool={"memory": "500GiB"}).notes == [
        "The pool of 500.00 GiB is more than the 8.56 GiB that RTX-4090 has beside the weights of llama-3.1-8b; no "
        "such engine would start."
    ]
    assert len(built(pool={"tokens": 70120}).notes) == 1
    assert built(without="pool", engine={"max_model_len": 8192}).notes == []


def test_a_start_that_the_planner_refuses_is_noted():
    [refused] = built(without="pool").notes
    assert refused.startswith(
        "vLLM would refuse to start: one request of 131,072 tokens needs 8,192 blocks (16.00 GiB)"
    )
    assert built(without="pool", engine={"profile": "orca-max", "max_model_len": 40000}).notes == []  # never released


@pytest.mark.parametrize(
    ("card", "engine", "noted"),
    [
        ("H100", {}, True),
        ("MI300X", {}, True),
        ("A100-SXM-80GB", {}, False),
        ("RTX 4090", {}, False),
        ("H100", {"max_num_seqs": 256}, False),
        ("H100", {"max_num_batched_tokens": 8192}, False),
    ],
)
def test_defaults_that_vllm_would_not_use_on_a_large_card_are_noted(card, engine, noted):
    notes = built(gpu=card, engine=engine).notes
    assert any("vLLM's server default is 1,024 sequences and 8,192 tokens a step" in note for note in notes) == noted


def test_weights_wider_than_the_published_ones_are_noted():
    def noted(dtype: str) -> bool:
        made = built(model={"name": "gpt-oss-20b", "weights_dtype": dtype}, gpu="A100-80GB", without="pool")
        return any(
            note.startswith("gpt-oss-20b is published in mxfp4, and its weights are bf16") for note in made.notes
        )

    assert noted("bf16")
    assert not noted("int4")


def test_sizes_that_nobody_gives_are_told_to_be_estimated():
    resolved = Scenario.from_dict(DEFAULT | {"capacity": {"activation": "1GiB"}}, name="here").resolved()
    assert resolved["capacity.activation"] == {"value": "1GiB", "source": "here"}
    assert resolved["capacity.non_torch"] == {"value": None, "source": "estimated"}


def test_the_limit_of_the_model_stands_in_the_resolved_scenario():
    scenario = Scenario.from_dict(DEFAULT)
    assert scenario.resolved()["engine.max_model_len"] == {"value": 131072, "source": "model llama-3.1-8b"}


def test_a_model_that_does_not_fit_is_told_how_many_ranks_would_hold_it():
    # 0.92 x 23.52 GiB less 2.06 GiB leaves 19.57 GiB: an eighth of 131.45 GiB fits, a quarter does not.
    with pytest.raises(DoesNotFitError, match=r"tensor_parallel: 8 would fit; a larger card"):
        built(without="pool", model="llama-3.1-70b")
    with pytest.raises(DoesNotFitError, match=r"No tensor_parallel fits; a larger card"):
        built(without="pool", model="llama-3.1-70b", capacity={"activation": "30GiB"})
