"""The command line as a whole: exit codes, messages, start-up, and the verbs that list facts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.errors import CheckError, DoesNotFitError
from kvsim.version import __version__

ROOT = Path(__file__).parents[2]
VERBS = [
    *("run", "compare", "sweep", "hit-curve", "calibrate", "validate"),
    *("models", "gpus", "engines", "presets", "schema", "replay"),
]


def kvsim(*arguments, **options):
    command = [sys.executable, "-m", "kvsim.cli.main", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)


def test_help_names_every_verb(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(f"    {verb} " in " ".join(out.splitlines()) for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: kvsim {verb}" in capsys.readouterr().out


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"kvsim {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "VERB"),
        (["fly"], "fly"),
        (["run"], "FILE"),
        (["run", "a.yaml", "--set", "rate"], "'rate' is not KEY=VALUE"),
        (["run", "a.yaml", "--set", "=3"], "'=3' is not KEY=VALUE"),
        (["run", "a.yaml", "--seed", "-1"], "'-1' is no seed"),
        (["run", "a.yaml", "--seed", "x"], "'x' is no seed"),
        (["compare", "a.yaml", "--variant", "paged"], "--variant"),
    ],
)
def test_a_wrong_command_line_ends_with_exit_2_and_says_why(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (DoesNotFitError("the weights need 15.0 GiB"), 3, "kvsim: the weights need 15.0 GiB\n"),
        (CheckError("2 slots leaked"), 1, "kvsim: 2 slots leaked\n"),
        (KeyboardInterrupt(), 130, "kvsim: interrupted\n"),
        (OSError(28, "No space left on device", "out/x"), 1, "kvsim: out/x: No space left on device\n"),
    ],
)
def test_each_failure_has_its_exit_code_and_one_message(error, code, message, calls, capsys, monkeypatch):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("kvsim.study.run", fail)
    assert main(["run", "a.yaml"]) == code
    assert capsys.readouterr() == ("", message)


def test_a_bug_is_not_hidden(calls, monkeypatch):
    monkeypatch.setattr("kvsim.study.run", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["run", "a.yaml"])


def test_schema_prints_json(calls, capsys):
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == {"type": "object"}


def test_a_reader_that_has_seen_enough_is_no_failure():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "kvsim.cli.main", "gpus", "--json"],
            cwd=ROOT,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_message_and_exit_1():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kvsim.cli.main", "gpus", "--json"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "kvsim: No space left on device"
    assert "Traceback" not in done.stderr


def test_help_loads_nothing_heavy():
    program = (
        "import sys\n"
        "from kvsim.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = set('numpy pandas pydantic ruamel rich simpy matplotlib pyarrow scipy'.split())\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(
    ("verb", "name", "field", "line"),
    [
        # 2 x 32 layers x 8 KV heads x 128 x 2 B
        ("models", "Llama-3.1-8B", "kv_bytes_per_token", "KV per token 128.00 KiB (131,072 B; bf16, one GPU)"),
        ("gpus", "H100", "memory_bytes", "bf16 peak 989 TFLOP/s dense"),
        ("engines", "vllm@0.33-sync", "max_num_seqs", "max_num_seqs 256 sequences"),
        ("presets", "diurnal-large", "rate", "process diurnal"),
    ],
)
def test_the_catalogue_is_listed_shown_and_asked(verb, name, field, line, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([verb, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert main([verb]) == 0
    table = capsys.readouterr().out
    assert max(len(line) for line in table.splitlines()) <= 80
    assert len(table.splitlines()) >= len(listed)
    assert main([verb, name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[field] > 0
    assert main([verb, name]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert line in [" ".join(row.split()) for row in shown]
    assert max(len(row) for row in shown) <= 80


def test_the_words_of_the_lists_are_explained_below_them(capsys, monkeypatch):
    from kvsim.catalog.models import models
    from kvsim.cli.lists.models import ATTENTION

    monkeypatch.setenv("COLUMNS", "80")
    assert main(["models"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    kinds = {one.attention for one in models()}
    assert all(f" {kind} " in out for kind in kinds)
    for word in {word for kind in kinds for word in kind.replace("+", "-").split("-")} - {"share"}:
        assert f"{word}: {ATTENTION[word]}" in out
    assert "far: what a further token adds" in out


def test_what_a_model_lacks_is_no_row_of_zeros(capsys):
    assert main(["models", "qwen3-4b"]) == 0
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert not any(row[-1] == "0" for row in rows)
    assert not any(row[0] in ("state", "experts", "window") for row in rows)


def test_the_deviations_of_an_engine_are_a_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in (["engines"], ["engines", "vllm@0.33-sync"]):
        assert main(command) == 0
        assert "- Prefix caching is on by default in vLLM 0.33; here it is on" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["models", "gpus", "engines", "presets"])
def test_an_unknown_name_is_exit_2(verb, capsys):
    assert main([verb, "no-such-thing-at-all"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kvsim: ")
    assert "no-such-thing-at-all" in err


def test_colour_is_off_where_it_is_not_wanted():
    done = kvsim("gpus", "--no-color", env={**os.environ, "FORCE_COLOR": "1"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


def test_neither_colour_nor_weight_is_printed_where_it_is_not_wanted(tmp_path):
    """Headings are bold otherwise, and notes dim."""
    scenario = ["run", "scenarios/azure-conversation.yaml", "--variant", "paged", "--set", "workload.requests=5"]
    env = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    assert "\x1b[1m" in kvsim(*scenario, env=env).stdout
    assert "\x1b" not in kvsim(*scenario, "--no-color", env=env).stdout
