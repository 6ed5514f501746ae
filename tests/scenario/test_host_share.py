"""`placement.host_share`: the pool that it gains, what the card then holds, and what it is not for."""

import json

import pytest

from kvsim.cli.main import main

SCENARIO = """
model: llama-3.1-8b
gpu: RTX 4090
engine: {profile: vllm@0.33-sync, max_model_len: 4096, max_num_seqs: 64}
pool: {blocks: 400}
workload: {requests: 24, rate: 20/s, prompt_tokens: 300, output_tokens: 200}
"""


@pytest.fixture
def run(tmp_path, capsys):
    path = tmp_path / "host.yaml"
    path.write_text(SCENARIO)

    def found(*sets, code=0, options=()):
        told = [word for one in sets for word in ("--set", one)]
        assert main(["run", str(path), "--json", *told, *options]) == code
        out = capsys.readouterr()
        return json.loads(out.out) if code == 0 else out.err

    return found


@pytest.mark.parametrize(("share", "blocks"), [("0.5", 800), ("20%", 500), ("0.75", 1600), ("0.7", 1333)])
def test_the_pool_grows_by_what_the_host_takes(run, share, blocks):
    assert run(f"placement.host_share={share}")["metrics"]["pool_blocks"] == blocks


def test_the_card_holds_what_it_held_and_the_host_the_rest(run):
    whole, half = run(), run("placement.host_share=0.5")
    assert half["metrics"]["device_bytes"]["pool"] == whole["metrics"]["device_bytes"]["pool"]
    (note,) = [note for note in half["notes"] if note.startswith("Host memory holds")]
    assert "800 MiB" in note.replace(".00", "")  # half of 800 blocks of 16 tokens at 128 KiB
    assert half["provenance"]["placement"] == "50 % of each request's KV on the host, read beside the GPU's work"
    assert "placement" not in whole["provenance"]


def test_requests_decode_more_slowly_and_most_so_without_overlap(run):
    whole, half = run(), run("placement.host_share=0.5")
    serial = run("placement.host_share=0.5", "placement.overlapped=false")
    tpots = [one["metrics"]["tpot_s"]["p50"] for one in (whole, half, serial)]
    assert tpots == sorted(tpots)
    assert tpots[0] < tpots[2]


@pytest.mark.parametrize("engine", ["vllm@0.33-sync", "vllm@0.33", "sglang@0.5.23"])
@pytest.mark.parametrize("timing", ["roofline", "calibrated"])
def test_leaping_and_stepping_are_the_same_and_every_slot_is_counted(run, engine, timing):
    sets = (f"engine.profile={engine}", f"timing={timing}", "placement.host_share=0.4", "workload.output_tokens=600")
    if engine.startswith("sglang"):
        sets = (*sets, "allocator=radix")
    assert run(*sets) == run(*sets, options=("--stepwise", "--check"))


def test_no_share_is_the_run_without_it(run):
    assert run("placement.host_share=0") == run()


def test_an_allocator_whose_regions_lie_in_one_piece_is_refused(run):
    said = run("placement.host_share=0.5", "allocator=contiguous", code=2)
    assert "placement.host_share" in said
    assert "paged or radix" in said


def test_all_of_it_on_the_host_is_refused(run):
    assert "placement.host_share" in run("placement.host_share=1", code=2)


def test_the_error_to_expect_of_it_is_not_known(run):
    found = run("placement.host_share=0.5")["expected_error"]
    assert found["tpot_median"] is None
    assert "on the host" in found["basis"]
