"""`validate`: no row is scored that was fitted to, every row is scored or counted, the JSON keeps its form."""

import csv
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from kvsim.errors import InputError
from kvsim.study.validation import kernels
from kvsim.study.validation.served.closed_loop import features
from kvsim.study.validation.served.engines import Engines, held_out
from kvsim.study.validation.served.runs import architecture, known_model, layout, why_not
from kvsim.study.validation.served.tables import read_runs
from kvsim.study.validation.served.time import SPREADS, ServedTime
from kvsim.study.validation.validate import sample_folder, validate
from kvsim.timing.families.interface import starts
from kvsim.timing.fitting.calibration import shipped
from kvsim.timing.fitting.kernel_tables import read_folder
from kvsim.timing.fitting.robust import Fitted

KEYS = {
    "source",
    "gpu",
    "model",
    "family",
    "n",
    "median_abs_error",
    "p90_abs_error",
    "bias",
    "baseline_datasheet_median",
    "baseline_linear_median",
}
"""The contract of `kvsim validate --json`."""


@cache
def found():
    return validate(sample_folder())


def table_rows(name):
    with (sample_folder() / name).open() as file:
        return list(csv.DictReader(file))


def test_every_group_has_the_keys_of_the_contract():
    assert found()["groups"]
    for part in ("groups", "first_token", "unseen_gpu", "unseen_release"):
        for group in found()[part]:
            assert group.keys() >= KEYS


def test_every_row_is_scored_once_or_skipped_with_a_reason():
    names = ("kernel_gemm.csv", "kernel_attn_decode.csv", "e2e_serving.csv")
    rows = sum(len(table_rows(name)) for name in names)
    assert found()["rows"] == found()["scored_rows"] == rows
    assert sum(group["n"] for group in found()["groups"]) == rows
    served = len(table_rows("e2e_serving.csv"))
    assert sum(group["n"] for group in found()["first_token"]) == served  # a served row has a first token too


def test_the_small_set_beats_both_baselines_on_shapes_and_models_it_has_not_seen():
    for row in found()["summary"]["unseen_model"]:
        if row["family"] != "ttft":
            assert row["median_abs_error"] < row["baseline_datasheet_median"]
            assert row["median_abs_error"] < row["baseline_linear_median"]


def test_a_kernel_is_predicted_from_other_shapes_alone():
    """Its own times may say anything: they do not show in its prediction."""
    sample = read_folder(sample_folder()).samples[0]
    target = next(kernels.folds(sample))
    honest = next(kernels.unseen_shapes([sample], shipped())).predicted[target]
    sample.seconds[target] *= 3
    assert next(kernels.unseen_shapes([sample], shipped())).predicted[target] == pytest.approx(honest)


def test_an_unseen_gpu_is_predicted_without_its_own_fits():
    sample = read_folder(sample_folder()).samples[0]
    from kvsim.timing.families import device

    blind = shipped().without([device(sample.gpu).name])
    with_own = next(kernels.unseen_gpu([sample], shipped())).predicted
    assert next(kernels.unseen_gpu([sample], blind)).predicted == pytest.approx(with_own)


def served():
    return [run for run in read_runs(sample_folder()).runs if why_not(run) is None]


def test_a_served_model_is_predicted_from_other_models_alone():
    runs = served()
    columns = features(runs, shipped())
    held = np.array([architecture(run.model) for run in runs])
    honest = held_out(Engines(runs, columns), held, held)
    engines = Engines(runs, columns)
    mine = held == held[0]
    engines.seconds[mine] *= 3
    assert held_out(engines, held, held)[mine] == pytest.approx(honest[mine])


def test_how_far_scales_may_differ_is_chosen_on_the_training_rows_alone():
    runs = served()
    engines = Engines(runs, features(runs, shipped()))
    held = np.array([architecture(run.model) for run in runs])
    train = held != held[0]
    chosen = engines.spread(train, held)
    assert chosen in SPREADS
    again = Engines(runs, engines.features)
    again.seconds[~train] *= 3
    assert again.spread(train, held) == chosen


def test_the_spread_that_predicts_held_out_training_rows_best_is_chosen():
    class Told(Engines):
        """Fits are right with one of the candidates alone."""

        def fits(self, train, groups, only=(), priors=None, spread=None):
            scale = 1.0 if spread == SPREADS[1] else 3.0
            values = starts(ServedTime()) | {"linear_scale": scale, "experts_scale": scale}
            return {name: Fitted(values, {}, 1) for name in dict.fromkeys(self.engine)}

    runs = served()
    engines = Told(runs, features(runs, shipped()))
    engines.seconds = ServedTime().seconds(starts(ServedTime()), engines.features)
    held = np.array([architecture(run.model) for run in runs])
    assert engines.spread(np.ones(len(runs), dtype=bool), held) == SPREADS[1]


def test_models_of_one_shape_are_held_out_together():
    assert architecture("Llama-3.3-70B") == architecture("meta-llama/Llama-3.1-70B")
    assert architecture("Llama-3.3-70B") != architecture("Llama-3-8B")


def test_what_a_source_says_of_the_checkpoint_is_no_other_model():
    assert known_model("nvidia/DeepSeek-R1-NVFP4").name == "deepseek-v3"
    assert known_model("Llama-3.1-405B FP8").name == "llama-3.1-405b"


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ((8, 1, 8, 1), (8, 1, 8, 1)),
        ((64, 1, 8, 8), (8, 1, 1, 8)),  # the same eight GPUs counted twice
        ((1, 64, 8, 8), (1, 8, 1, 8)),
        ((4, 4, 1, 16), (1, 4, 1, 4)),
        ((36, 1, 36, 1), (1, 36, 1, 36)),  # more than a node: each GPU has sequences of its own
    ],
)
def test_the_sizes_that_a_source_states_are_read_as_gpus(stated, meant):
    found = layout(*stated, moe=True)
    assert (found.tensor_parallel, found.data_parallel, found.expert_tensor, found.expert_parallel) == meant


def test_a_pool_too_small_for_its_clients_makes_them_wait():
    """Llama-2-7B on one A100 with 2,048 + 2,048 tokens: 64 do not fit at once (LMDeploy's cliff)."""
    from dataclasses import replace

    base = replace(
        served()[0], gpu="A100-80GB", model="llama-2-7b", layout=layout(1, 1, 1, 1, moe=False), dtype="bf16",
        kv_dtype="bf16", engine="lmdeploy", prompt=2048.0, output=2048.0, quantity="saturated",
    )  # fmt: skip
    columns = features([replace(base, batch=batch) for batch in (8.0, 64.0)], shipped())
    assert columns["waiting"][0] == 0
    assert columns["waiting"][1] > 0.5


def test_a_folder_with_one_known_file_is_enough(tmp_path):
    shutil.copy(sample_folder() / "kernel_gemm.csv", tmp_path)
    only = validate(tmp_path)
    assert {group["source"] for group in only["groups"]} == {"kernel_gemm.csv"}


def test_a_folder_with_nothing_known_is_refused(tmp_path):
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="holds no table that can be scored"):
        validate(tmp_path)


def test_a_gpu_that_nobody_fitted_is_still_scored(tmp_path):
    text = (sample_folder() / "kernel_gemm.csv").read_text().replace("h100_sxm", "h200_sxm").replace("a100_sxm", "l4")
    (tmp_path / "kernel_gemm.csv").write_text(text)
    only = validate(tmp_path)
    assert only["scored_rows"] == only["rows"]
    assert {group["gpu"] for group in only["groups"]} == {"h200_sxm", "l4"}


def test_a_model_without_a_shape_is_skipped_with_its_name(tmp_path):
    text = (sample_folder() / "e2e_serving.csv").read_text().replace("Qwen/Qwen3-32B", "nobody/Unheard-7B")
    (tmp_path / "e2e_serving.csv").write_text(text)
    only = validate(tmp_path)
    (skipped,) = only["skipped"]
    assert "Unheard-7B" in skipped["reason"]
    assert only["scored_rows"] == only["rows"] - skipped["rows"]


def test_the_report_is_written_whole(tmp_path):
    from kvsim.reporting.validation import write_validation

    written = write_validation(found(), tmp_path)
    assert {path.name for path in written} == {"README.md", "validation.json", "validation.png", "validation.svg"}
    text = Path(tmp_path, "README.md").read_text()
    assert "## Goals" in text
    assert "kernel_attn_decode.csv" in text


def test_the_cliff_of_a_70b_on_two_h100_lies_between_32_and_64_in_flight():
    """Measured (vLLM, FP8, 1,024 + 8,192 tokens): the first token comes after 0.29 s with 32, after 30.8 s with 64."""
    from dataclasses import replace

    base = replace(
        served()[0], gpu="h100_sxm", model="meta-llama/Llama-3.1-70B", layout=layout(2, 1, 1, 1, moe=False),
        dtype="fp8", kv_dtype="bf16", engine="vllm", prompt=1024.0, output=8192.0, quantity="tpot",
    )  # fmt: skip
    waiting = features([replace(base, batch=batch) for batch in (32.0, 64.0)], shipped())["waiting"]
    assert waiting[0] == 0
    assert waiting[1] > 0.2
