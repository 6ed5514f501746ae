"""The README tells the truth: its Python runs, its commands parse, its scenario is a scenario, its tree is the tree."""

import doctest
import re
from pathlib import Path

import pytest

from kvsim.cli.main import main
from kvsim.scenario import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, flags=re.DOTALL)
COMMANDS = [
    line.partition("#")[0].split()[1:]
    for language, text in BLOCKS
    if not language
    for line in text.splitlines()
    if line.startswith("kvsim ")
]


def test_the_python_of_the_readme_runs():
    failures, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert tried >= 5
    assert not failures


def test_the_readme_shows_every_verb_that_simulates():
    assert {command[0] for command in COMMANDS} >= {"compare", "run", "models", "gpus", "replay"}


@pytest.mark.parametrize("command", {" ".join(command): command for command in COMMANDS}.values(), ids=" ".join)
def test_every_command_of_the_readme_works(command, tmp_path, monkeypatch, capsys):
    # What people see who have no other data: `validate` would score all of it, a minute and more.
    monkeypatch.delenv("KVSIM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    assert main(command) == 0
    assert capsys.readouterr().out


def test_the_scenario_of_the_readme_is_a_scenario(tmp_path):
    (text,) = (text for language, text in BLOCKS if language == "yaml")
    (tmp_path / "readme.yaml").write_text(text, "utf-8")
    assert load(tmp_path / "readme.yaml").settings.allocator.name == "reserve"


def test_the_tree_of_the_readme_is_the_tree():
    (tree,) = (text for _, text in BLOCKS if text.startswith("kvsim/\n"))
    rooms = set(re.findall(r"^  (\w+)/", tree, flags=re.MULTILINE))
    there = {path.parent.name for path in (ROOT / "kvsim").glob("*/__init__.py")}
    assert rooms == there
