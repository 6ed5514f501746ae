"""A table of logged start-ups: cells as logs and people write them, each row planned or said why not."""

import csv

import pytest

from kvsim.capacity.checking.compare import default_record, given_record
from kvsim.capacity.checking.rows import NEEDED, read_rows
from kvsim.capacity.checking.scores import check_table, quantile
from kvsim.errors import InputError
from kvsim.metrics.result import to_json

LLAMA = {
    "id": "A", "engine": "vLLM", "engine_version": "0.19.0", "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "H100-80GB", "gpu_total_gib": "79.19", "tp": "1", "pp": "1", "util": "0.95", "block_size": "16",
    "max_model_len": "8192", "weights_gib_per_gpu": "14.99", "non_torch_gib": "0.25", "activation_peak_gib": "1.89",
    "kv_memory_gib_per_gpu": "58.11", "kv_blocks": "29751", "kv_tokens": "476016", "max_concurrency": "58.11",
    "outcome": "ok", "consistent": "yes",
}  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read(*rows):
        file = tmp_path / "starts.csv"
        columns = list(dict.fromkeys([*NEEDED, *(column for row in rows for column in row)]))
        with file.open("w", encoding="utf-8", newline="") as stream:
            table = csv.DictWriter(stream, columns)
            table.writeheader()
            table.writerows(rows)
        return read_rows(file)

    return read


def test_a_row_is_planned_from_what_it_logs_and_from_its_flags(read):
    [row] = read(LLAMA)
    given, default = given_record(row), default_record(row)
    assert given["inside"] == dict.fromkeys(given["inside"], True)
    assert given["error"]["kv_tokens"] == pytest.approx(0, abs=1e-3)
    assert default["logged"]["overhead_gib"] == 2.13
    assert default["predicted"]["overhead_gib"] == pytest.approx(2.13, abs=0.05)


@pytest.mark.parametrize(
    "changed",
    [
        {"kv_memory_gib_per_gpu": "about 58"},
        {"gpu_total_gib": "80GB"},
        {"tp": "two"},
        {"kv_cache_dtype": "fp8_e4m3", "kv_memory_gib_per_gpu": ""},
        {"quantization": "FP8 dynamic (compressed-tensors)"},
        {"quantization": "never heard of"},
        {"model": "nobody/Unknown-7B", "arch_kv_layers": "32", "arch_kv_heads": "8", "arch_head_dim": "128"},
        {"model": "", "engine": "LMDeploy"},
        {"gpu": "some card", "gpu_total_gib": ""},
        {"outcome": "refused: No available memory for the cache blocks"},
        {"util": "1.2"},
        {"tp": "3"},
        {"tp": "nan"},
        {"pp": "inf"},
        {"util": "nan"},
        {"max_model_len": "nan"},
        {"kv_memory_gib_per_gpu": "nan"},
        {"kv_memory_gib_per_gpu": "0"},
        {"kv_blocks": "inf"},
        {"model": "nobody/Unknown-7B", "arch_kv_layers": "0", "arch_kv_heads": "inf", "arch_head_dim": "-1"},
        dict.fromkeys(LLAMA, ""),
    ],
    ids=str,
)
def test_no_cell_brings_the_table_down(read, changed):
    found = check_table(read(LLAMA | changed, LLAMA))
    to_json(found)  # no NaN
    for part in found.values():
        assert len(part["rows"]) == 2
        assert part["rows"][0]["predicted"] or part["rows"][0]["why"]


def test_an_unknown_model_is_planned_given_its_layers_and_an_unknown_engine_given_its_memory(read):
    shape = {"arch_kv_layers": "32", "arch_kv_heads": "8", "arch_head_dim": "128"}
    for changed in ({"model": "nobody/Unknown-7B"}, {"engine": "LMDeploy"}):
        [row] = read(LLAMA | shape | changed)
        assert given_record(row)["inside"]["kv_blocks"]


@pytest.mark.parametrize(
    ("outcome", "reason_class"),
    [
        ("ok", None),
        ("refused: KV too small for max_model_len", "max_model_len_above_pool"),
        ("refused: No available memory for the cache blocks", "no_kv_memory"),
        ("refused: free memory below the share", "gpu_memory_taken"),
        ("OOM after KV allocation", "oom_after_kv"),
    ],
)
def test_how_a_start_ended_is_a_class(read, outcome, reason_class):
    [row] = read(LLAMA | {"outcome": outcome})
    assert row.refused == reason_class


def test_flags_that_notes_state_are_used(read):
    few, many = read(LLAMA | {"notes": "--max-num-batched-tokens 1024, --max-num-seqs 8"}, LLAMA)
    assert default_record(few)["predicted"]["activation_gib"] < default_record(many)["predicted"]["activation_gib"] / 3


def test_only_k_is_half_of_the_kv(read):
    both, half = read(LLAMA, LLAMA | {"kv_memory_gib_per_gpu": "29.055", "kv_memory_scope": "K only"})
    assert both.kv_memory.best == half.kv_memory.best


def test_votes_count_kinds_of_start_and_rows_of_one_kind_once(read):
    rows = [LLAMA | {"id": str(number)} for number in range(5)] + [LLAMA | {"id": "tp2", "tp": "2"}]
    assert check_table(read(*rows))["default"]["summary"]["overhead_gib"]["n"] == 2


def test_what_is_no_such_table_is_refused(tmp_path):
    file = tmp_path / "other.csv"
    file.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="has no column engine; needed are engine, engine_version"):
        read_rows(file)
    with pytest.raises(InputError, match="cannot be read as a table"):
        read_rows(tmp_path / "none.csv")


@pytest.mark.parametrize(("share", "value"), [(0, 1), (0.5, 2.5), (0.9, 3.7), (1, 4)])
def test_quantiles_are_linear_between_neighbours(share, value):
    assert quantile([4, 1, 3, 2], share) == pytest.approx(value)


def test_no_values_have_no_quantile():
    assert quantile([], 0.5) is None


def test_a_table_may_lack_ids_and_the_judgement_and_open_with_a_mark(tmp_path):
    columns = {name: value for name, value in LLAMA.items() if name not in ("id", "consistent")}
    file = tmp_path / "starts.csv"
    lines = [",".join(columns), ",".join(columns.values()), ",".join(columns.values())]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    found = check_table(read_rows(file))
    assert [row["id"] for row in found["given"]["rows"]] == ["row 1", "row 2"]
    assert found["given"]["summary"]["consistent_rows"] == 2


def test_a_table_of_a_head_alone_is_refused(tmp_path):
    file = tmp_path / "starts.csv"
    file.write_text(",".join(LLAMA) + "\n")
    with pytest.raises(InputError, match="has a head and no row"):
        read_rows(file)
