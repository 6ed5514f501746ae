"""The ledger of a device: everything adds up to the card, and a step has the room that is left."""

from dataclasses import replace
from typing import Any

import pytest

from kvsim import Scenario, run
from kvsim.capacity.deployment import Deployment
from kvsim.capacity.device import Device
from kvsim.capacity.overheads.releases import release
from kvsim.capacity.planner import plan
from kvsim.capacity.span import Span
from kvsim.capacity.weights.loaded import loaded_weights
from kvsim.catalog.gpus import gpu
from kvsim.catalog.models import model

CARD = gpu("A100-SXM-40GB")
DEVICE = Device(
    card_bytes=CARD.memory_bytes,
    weights_bytes=26 * 10**9,
    pool_bytes=12 * 2**30,
    other_bytes=2**28,
    deployment=Deployment(
        model=model("opt-13b"), engine=release("vllm@0.2"), total=Span.exactly(CARD.memory_bytes), gpu=CARD
    ),
)


@pytest.mark.parametrize("tokens", [0, 1, 256, 2560])
def test_the_parts_add_up_to_the_card(tokens):
    ledger = DEVICE.ledger(tokens, min(tokens, 256))
    assert ledger.pop("card") == sum(ledger.values()) == CARD.memory_bytes


def test_a_larger_step_takes_more_and_an_empty_one_nothing():
    taken = [DEVICE.workspace_bytes(tokens, 64) for tokens in (0, 64, 512, 4096)]
    assert taken[0] == 0
    assert taken == sorted(set(taken))


def test_the_most_tokens_are_those_for_which_there_is_room():
    tight = replace(DEVICE, pool_bytes=DEVICE.pool_bytes + DEVICE.room_bytes - DEVICE.workspace_bytes(1000, 256))
    most = tight.most_tokens(4096, 256)
    assert most >= 1000
    assert tight.workspace_bytes(most, 256) <= tight.room_bytes < tight.workspace_bytes(most + 1, 256)
    assert DEVICE.most_tokens(2560, 256) == 2560


def test_a_planned_start_is_divided_as_the_plan_says():
    made = plan(DEVICE.deployment)
    device = Device.serving(made, pool_bytes=made.kv_taken_bytes)
    parts = (device.card_bytes, device.weights_bytes, device.other_bytes, device.workspace_bytes(2048, 256))
    stage = made.stage
    assert parts == pytest.approx(
        (CARD.memory_bytes, WEIGHTS_BYTES, stage.non_torch.best + stage.cuda_graphs.best, stage.activation.best), abs=1
    )
    assert device.most_tokens(2048, 256) == 2048


OTHER_MIB = 320
WEIGHTS_BYTES = loaded_weights(model("opt-13b"))[0].weight_bytes


def served(room_mib: int, **engine: Any):
    """A run whose pool leaves so much for the workspace: 103 MiB are enough to decode, a prompt of 1,500 takes 208."""
    pool_bytes = CARD.memory_bytes - WEIGHTS_BYTES - (OTHER_MIB + room_mib) * 2**20
    workload = {"rate": "4/s", "requests": 40, "prompt_tokens": 1500, "output_tokens": 20}
    engine = {"max_model_len": 2048, "max_num_seqs": 64} | engine
    data = {
        "model": "opt-13b",
        "gpu": CARD.name,
        "pool": {"memory": f"{pool_bytes}B"},
        "engine": engine,
        "workload": workload,
    }
    capacity = {"non_torch": "256MiB", "cuda_graphs": "64MiB"}
    return run(Scenario.from_dict(data | {"capacity": capacity}, name="here"), check=True)


def test_a_pool_that_leaves_no_room_for_the_workspace_blocks_prompts_for_activation():
    roomy, tight = served(1024), served(190)
    assert roomy.metrics["blocked"]["activation"] == 0
    assert tight.metrics["blocked"]["activation"] > 0
    assert tight.metrics["finished"] == 40  # in smaller chunks
    assert tight.metrics["device_bytes"]["left"] >= 0
    assert "wait" in set(tight.events.query("cause == 'activation'")["outcome"])


def test_prompts_that_come_whole_and_have_no_workspace_are_rejected_for_activation():
    tight = served(190, profile="vllm@0.2")
    assert tight.metrics["rejected"] == 40
    assert set(tight.events["cause"]) == {"activation"}
    assert set(tight.events["outcome"]) == {"reject"}
