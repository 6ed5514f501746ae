"""`kvsim run --jobs`: a fleet whose replicas do not know of each other is worked on in pieces, with the same answer."""

import json

import pytest

from kvsim.cli.main import main
from tests.study.sweeps.small import YAML


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(YAML)


def told(capsys, *arguments):
    assert main(["run", "s.yaml", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_processes_give_what_one_gives(capsys):
    fleet = ("--set", "fleet={replicas: 6, router: random}", "--set", "workload.rate=40/s")
    assert told(capsys, *fleet, "--jobs", "2") == told(capsys, *fleet)


@pytest.mark.parametrize("fleet", [(), ("--set", "fleet={replicas: 2, router: least-kv}")])
def test_what_cannot_be_taken_apart_is_refused(fleet, capsys):
    assert main(["run", "s.yaml", *fleet, "--jobs", "2"]) == 2
    assert "work is shared out for a fleet whose router is one of round-robin, random" in capsys.readouterr().err
