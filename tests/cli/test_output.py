"""Whatever standard output and the folder are: no traceback, and no run whose results cannot be written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kvsim.cli.main import main

ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests" / "oracles" / "data" / "vllm" / "vllm_nocache_d1.json"
SCENARIO = """\
model: llama-3.1-8b
gpu: RTX 4090
pool: {blocks: 2588}
engine: {max_model_len: 4096}
workload: {rate: 8/s, requests: 5, prompt_tokens: 100, output_tokens: 5}
"""


@pytest.fixture(autouse=True)
def scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO)
    return path


def kvsim(*arguments, stdout=subprocess.PIPE, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kvsim.cli.main", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
    )


@pytest.mark.parametrize("arguments", [["models"], ["models", "--json"], ["--help"], ["run", "s.yaml"]])
def test_a_reader_that_has_seen_enough_of_a_table_is_no_failure(arguments):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = kvsim(*arguments, stdout=pipe)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", [["models"], ["models", "--json"], ["run", "s.yaml"]])
@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes descriptors")
def test_a_closed_output_is_no_traceback(arguments):
    command = [sys.executable, "-m", "kvsim.cli.main", *arguments]
    shell = ["sh", "-c", '"$@" >&-', "sh", *command]
    done = subprocess.run(shell, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_any_encoding(encoding):
    done = kvsim("run", "s.yaml", "--json", "--set", "name=é漢😀", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode(encoding))["name"] == "é漢😀"


def test_a_table_writes_what_the_encoding_lacks_as_escapes():
    done = kvsim("run", "s.yaml", "--set", "name=é漢", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert "é\\u6f22" in done.stdout.decode("latin-1")


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_an_interrupt_while_the_program_is_still_loading_is_quiet(tmp_path):
    """The signal comes with the first import of a command; before that, Python itself is loading."""
    program = (
        "import builtins, os, signal, sys\n"
        # Whoever starts the tests in the background has the signal ignored, and children inherit that.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "load = builtins.__import__\n"
        "def interrupted(name, *rest, **options):\n"
        "    if name == 'argparse':\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return load(name, *rest, **options)\n"
        "from kvsim.cli.main import main\n"
        "builtins.__import__ = interrupted\n"
        "sys.exit(main(['gpus']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode in (130, -signal.SIGINT)
    assert (done.stdout, done.stderr) == ("", "kvsim: interrupted\n")


# Where results go is looked at before anything runs.


@pytest.fixture
def ran(monkeypatch):
    """Told when a scenario is run or a case is replayed."""
    told = []
    monkeypatch.setattr("kvsim.study.run", lambda *a, **k: told.append("run"))
    monkeypatch.setattr("kvsim.study.compare", lambda *a, **k: told.append("compare"))
    monkeypatch.setattr("kvsim.engine.replay.replay", lambda case: told.append("replay"))
    return told


@pytest.mark.parametrize("verb", ["run", "compare"])
@pytest.mark.parametrize("folder", ["", "s.yaml", "s.yaml/below", "x" * 300, "to/nowhere", "old"])
def test_a_folder_that_cannot_be_is_refused_before_the_run(ran, tmp_path, capsys, verb, folder):
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "letter.txt").write_text("dear")
    before = sorted(tmp_path.rglob("*"))
    assert main([verb, "s.yaml", "-o", folder]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kvsim: -o ")
    assert len(err.splitlines()) == 1
    assert ran == []
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_where_a_variant_would_go_is_refused_before_the_run(ran, tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(SCENARIO + "variants: {a: {seed: 1}, b: {seed: 2}}\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "summary.json").write_text("{}")
    (tmp_path / "out" / "b").write_text("")
    assert main(["compare", "s.yaml", "-o", "out"]) == 2
    assert capsys.readouterr().err == "kvsim: -o out/b: is a file; name a folder, new or old\n"
    assert ran == []


@pytest.mark.parametrize("file", ["", "folder", "s.yaml/below", "x" * 300, os.devnull])
def test_a_file_that_cannot_be_is_refused_before_the_replay(ran, tmp_path, capsys, file):
    (tmp_path / "folder").mkdir()
    assert main(["replay", str(CASE), "-o", file]) == 2
    assert capsys.readouterr().err.startswith("kvsim: -o ")
    assert ran == []
    assert Path(os.devnull).is_char_device() or os.name != "posix"


def test_a_replay_may_write_over_an_old_file(tmp_path, capsys):
    (tmp_path / "out.jsonl").write_text("old")
    assert main(["replay", str(CASE), "-o", "out.jsonl"]) == 0
    assert (tmp_path / "out.jsonl").read_text().startswith('{"step":0,')


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
@pytest.mark.parametrize("arguments", [["/dev/zero"], [str(CASE), "--against", "/dev/zero"]])
def test_a_device_is_no_case_and_no_record(capsys, arguments):
    assert main(["replay", *arguments]) == 2
    assert capsys.readouterr().err == "kvsim: /dev/zero: is a device or a pipe; name a file\n"


def test_variants_named_like_the_files_of_a_run_folder_get_folders_of_their_own(tmp_path, capsys):
    names = ["summary.json", "README.md", "comparison.png", "steps.parquet", "x" * 300]
    variants = "".join(f"  {name}: {{seed: {seed}}}\n" for seed, name in enumerate(names))
    (tmp_path / "s.yaml").write_text(f"{SCENARIO}variants:\n{variants}")
    assert main(["compare", "s.yaml", "-o", "out"]) == 0
    assert len(json.loads((tmp_path / "out" / "summary.json").read_text())["variants"]) == len(names)
    folders = {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert folders == {"summary.json-2", "README.md-2", "comparison.png-2", "steps.parquet-2", "x" * 60}
