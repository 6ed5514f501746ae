"""`kvsim run` and `kvsim compare`: what they ask for, what they print, what they leave."""

import json

import pytest

from kvsim.cli.main import main
from kvsim.errors import InputError
from kvsim.metrics.result import Result
from kvsim.metrics.tables import Dropped
from kvsim.reporting.comparison import comparison_summary
from tests.fake_results import fake_result


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    """What is printed is the same where no folder is written."""
    monkeypatch.setattr("kvsim.reporting.run_folder.write_comparison", lambda *_, **__: [])


def test_run_hands_everything_on(calls):
    options = ["--set", "workload.rate=12/s", "--set", "seed=3", "--variant", "paged", "--seed", "5"]
    assert main(["run", "a.yaml", *options, "--stepwise", "--check", "--json"]) == 0
    [(args, kwargs)] = calls.named("load")
    assert args == ("a.yaml",)
    assert kwargs == {"overrides": ["workload.rate=12/s", "seed=3"], "variant": "paged"}
    [(args, kwargs)] = calls.named("run")
    assert args[0].label == "paged"
    assert isinstance(kwargs.pop("pieces"), Dropped)
    assert kwargs == {
        "seed": 5,
        "stepwise": True,
        "check": True,
        "addresses": False,
        "kv_events": False,
        "prompts": False,
        "progress": None,
    }


def test_addresses_are_recorded_on_request_and_need_a_folder(calls, capsys):
    assert main(["run", "a.yaml", "--addresses", "-o", "out"]) == 0
    [(_, kwargs)] = calls.named("run")
    assert kwargs["addresses"]
    assert main(["run", "a.yaml", "--addresses"]) == 2
    assert "--addresses: what it records goes into a run folder; name one with -o DIR" in capsys.readouterr().err
    assert len(calls.named("run")) == 1


def test_what_prompts_share_is_recorded_on_request_and_needs_a_folder(calls, capsys):
    assert main(["run", "a.yaml", "--prompts", "-o", "out"]) == 0
    [(_, kwargs)] = calls.named("run")
    assert kwargs["prompts"]
    assert main(["run", "a.yaml", "--prompts"]) == 2
    assert "--prompts: what it records goes into a run folder; name one with -o DIR" in capsys.readouterr().err


def test_run_json_prints_the_summary_and_nothing_else(calls, capsys, tmp_path):
    assert main(["run", "a.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == fake_result().summary
    assert err == ""
    assert list(tmp_path.iterdir()) == []


def test_run_json_with_a_folder_still_prints_only_json(calls, capsys, tmp_path):
    assert main(["run", "a.yaml", "--json", "-o", "out"]) == 0
    assert json.loads(capsys.readouterr().out) == fake_result().summary
    assert Result.load(tmp_path / "out").summary == fake_result().summary


def test_run_writes_nothing_unless_asked(calls, capsys, tmp_path):
    assert main(["run", "a.yaml"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert "written" not in capsys.readouterr().out


def test_people_see_table_provenance_gaps_and_the_time_it_took(calls, capsys):
    assert main(["run", "a.yaml", "-o", "out"]) == 0
    out = capsys.readouterr().out
    for part in (
        "Pool 41,408 tokens, 100 requests: paged wastes 5 % of the memory it occupies and\nruns 24 requests at once",
        "measured: 0 to 90 s (to the last arrival); finished, rejected, preemptions,",
        "waste, %",
        "step times: estimated from data sheets\n",
        "expected error: TPOT 8 % median, 14 % p90; TTFT 72 % median, 86 % p90 (dense\n  models under vllm",
        "not modelled:\n- small blocks",
    ):
        assert part in out
    assert "simulated in 0.42 s" in out
    assert "written to out" in out


def test_no_seed_on_the_command_line_leaves_the_scenarios(calls):
    main(["run", "a.yaml", "--json"])
    assert calls.named("run")[0][1]["seed"] is None


def test_compare_runs_every_variant_under_its_name(calls):
    assert main(["compare", "a.yaml", "--set", "seed=3", "--json"]) == 0
    assert calls.named("load_all") == [(("a.yaml", ["seed=3"]), {})]
    [(args, _)] = calls.named("compare")
    assert [name for name, _ in args[0]] == ["contiguous", "paged"]


def test_compare_json_prints_all_variants_and_writes_nothing(calls, capsys, tmp_path):
    assert main(["compare", "a.yaml", "--json"]) == 0
    expected = comparison_summary("azure", [fake_result("contiguous"), fake_result("paged")])
    assert json.loads(capsys.readouterr().out) == expected
    assert list(tmp_path.iterdir()) == []


def test_compare_writes_below_runs_and_says_where(calls, capsys, tmp_path):
    assert main(["compare", "a.yaml"]) == 0
    out = capsys.readouterr().out
    assert "written to runs/azure" in out
    assert "2 runs simulated in 0.84 s" in out
    for variant in ("contiguous", "paged"):
        assert (tmp_path / "runs" / "azure" / variant / "memory_over_time.png").exists()


@pytest.mark.usefixtures("nothing_is_drawn")
def test_a_table_of_four_stays_within_80_columns(calls, capsys, monkeypatch):
    names = ["contiguous", "reserve-max", "paged", "paged-block-1"]
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: [fake_result(name) for name in names])
    assert main(["compare", "a.yaml", "-o", "out"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert sum("used, %" in line for line in lines) == 1
    assert not any("…" in line for line in lines)


@pytest.mark.usefixtures("nothing_is_drawn")
def test_the_longest_row_still_leaves_room_for_four(calls, capsys, monkeypatch):
    results = [fake_result(name) for name in ("contiguous", "reserve-max", "paged", "paged-block-1")]
    assert all(result.metrics["blocked"]["never"] for result in results)
    for result in results:
        result.metrics["goodput_per_s"] = None
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: results)
    assert main(["compare", "a.yaml", "-o", "out"]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "rejected: can never fit 2 2 2 2" in rows
    assert "goodput, /s no slo set no slo set no slo set no slo set" in rows


@pytest.mark.usefixtures("nothing_is_drawn")
def test_more_results_than_fit_go_into_further_tables(calls, capsys, monkeypatch):
    names = [f"variant-{number}" for number in range(9)]
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: [fake_result(name) for name in names])
    assert main(["compare", "a.yaml", "-o", "out"]) == 0
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert sum("used, %" in line for line in out.splitlines()) == 3
    assert all(name in out for name in names)


@pytest.mark.usefixtures("nothing_is_drawn")
def test_a_note_that_holds_for_some_names_them(calls, capsys, monkeypatch):
    first, second = fake_result("contiguous"), fake_result("paged")
    first.not_modelled = []
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: [first, second])
    assert main(["compare", "a.yaml"]) == 0
    out = capsys.readouterr().out
    assert "not modelled:\n- small blocks come free (paged)" in out
    assert out.count("step times: estimated") == 1


@pytest.mark.usefixtures("nothing_is_drawn")
def test_notes_on_the_scenario_are_told_before_everything_that_is_not_modelled(calls, capsys, monkeypatch):
    result = fake_result()
    result.notes = ["The pool is more than the card has."]
    monkeypatch.setattr("kvsim.study.run", lambda *a, **k: result)
    assert main(["run", "a.yaml"]) == 0
    out = capsys.readouterr().out
    assert out.index("note: The pool is more than the card has.\n") < out.index("not modelled:")


@pytest.mark.usefixtures("nothing_is_drawn")
def test_one_run_is_not_called_runs(calls, capsys, monkeypatch):
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: [fake_result()])
    assert main(["compare", "a.yaml"]) == 0
    assert "\n1 run simulated in " in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["run", "compare"])
def test_a_folder_with_somebodys_files_is_refused_before_anything_runs(verb, calls, capsys, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("")
    assert main([verb, "a.yaml", "-o", "thesis"]) == 2
    assert not calls.named("run")
    assert not calls.named("compare")
    assert capsys.readouterr().err.startswith("kvsim: -o thesis: is not empty and holds no run (no summary.json); ")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]


@pytest.mark.parametrize("verb", ["run", "compare"])
def test_a_run_folder_may_be_written_again(verb, calls, capsys):
    for _ in range(2):
        assert main([verb, "a.yaml", "-o", "out"]) == 0
    capsys.readouterr()


@pytest.mark.usefixtures("nothing_is_drawn")
def test_names_with_brackets_are_printed_as_they_are(calls, capsys, monkeypatch):
    monkeypatch.setattr("kvsim.study.run", lambda *a, **k: fake_result("[red]x[/]"))
    assert main(["run", "a.yaml"]) == 0
    assert "[red]x[/]" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["run", "compare"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(verb, calls, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main([verb, "a.yaml", "-o", "file/below"]) == 2
    assert not calls.named("run")
    assert not calls.named("compare")
    assert capsys.readouterr().err.startswith("kvsim: -o file/below: ")


def test_wrong_input_is_one_message_and_exit_2(calls, capsys, monkeypatch):
    def refuse(*args, **kwargs):
        raise InputError("a.yaml:3: gpu: RTX is unknown; did you mean RTX 4090?")

    monkeypatch.setattr("kvsim.scenario.load", refuse)
    assert main(["run", "a.yaml", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "kvsim: a.yaml:3: gpu: RTX is unknown; did you mean RTX 4090?\n"


def test_a_bar_is_shown_on_a_terminal_only(calls, monkeypatch, capsys):
    told = []

    def run(scenario, *, progress, **kwargs):
        told.append(progress)
        if progress:
            progress(0.5, "half")
        return fake_result()

    monkeypatch.setattr("kvsim.study.run", run)
    main(["run", "a.yaml"])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    main(["run", "a.yaml", "--json"])
    assert told == [None, None]
    capsys.readouterr()
    main(["run", "a.yaml"])
    assert told[2] is not None
    out, err = capsys.readouterr()
    assert "half" in err
    assert "half" not in out


def test_the_bar_goes_on_while_the_folder_is_written(calls, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert main(["run", "a.yaml", "-o", "out"]) == 0
    assert "writing paged" in capsys.readouterr().err


# KV events.


def test_kv_events_go_into_the_file_that_was_named_and_into_the_folder(tmp_path, capsys):
    path = tmp_path / "s.yaml"
    path.write_text(
        "model: llama-3.1-8b\ngpu: H100\npool: {tokens: 8000}\nallocator: {name: paged, prefix_caching: true}\n"
        "workload: {rate: 4/s, requests: 5, prompt_tokens: 100, output_tokens: 5, prefix: {tokens: 64}}\n"
    )
    events, folder = tmp_path / "new" / "events.jsonl", tmp_path / "run"
    assert main(["run", str(path), "--kv-events", str(events), "-o", str(folder)]) == 0
    assert f"KV events written to {events}" in capsys.readouterr().out
    assert events.read_bytes() == (folder / "kv_events.jsonl").read_bytes()
    batches = [json.loads(line) for line in events.read_text().splitlines()]
    kinds = {event["type"] for batch in batches for event in batch["events"]}
    assert kinds == {"AllBlocksCleared", "BlockStored"}
    assert "- `kv_events.jsonl`: " in (folder / "README.md").read_text()


def test_a_file_for_kv_events_that_cannot_be_is_said_before_the_run(tmp_path, capsys):
    assert main(["run", "absent.yaml", "--kv-events", str(tmp_path)]) == 2
    assert "--kv-events" in capsys.readouterr().err
