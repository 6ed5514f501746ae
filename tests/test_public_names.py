"""What `import kvsim` offers, and what it costs."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import kvsim

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "pandas", "simpy", "pydantic", "matplotlib", "pyarrow", "scipy", "rich", "ruamel")


def loaded_after(program: str) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after `program`."""
    show = f"\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    command = [sys.executable, "-c", program + show]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", kvsim.__all__)
def test_every_public_name_is_there(name):
    assert getattr(kvsim, name) is not None


def test_public_names_are_the_ones_of_their_homes():
    assert kvsim.Result is importlib.import_module("kvsim.metrics.result").Result
    assert kvsim.Scenario is importlib.import_module("kvsim.scenario.resolve").Scenario
    assert kvsim.run is importlib.import_module("kvsim.study.single").run
    assert kvsim.compare is importlib.import_module("kvsim.study.side_by_side").compare
    assert kvsim.__version__ == importlib.import_module("kvsim.version").__version__


@pytest.mark.parametrize("module", ["kvsim", "kvsim.study"])
def test_a_name_that_is_not_there_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'plot'"):
        _ = importlib.import_module(module).plot


def test_importing_kvsim_loads_none_of_its_dependencies():
    assert loaded_after("import kvsim") == set()


def test_a_run_loads_neither_pandas_nor_matplotlib_nor_pyarrow_nor_scipy():
    program = (
        "from kvsim import Scenario, run\n"
        "workload = {'rate': '4/s', 'requests': 3, 'prompt_tokens': 50, 'output_tokens': 5}\n"
        "data = {'model': 'llama-3.1-8b', 'gpu': 'H100', 'pool': {'blocks': 64}, 'workload': workload}\n"
        "assert run(Scenario.from_dict(data)).summary['metrics']['finished'] == 3\n"
    )
    assert not loaded_after(program) & {"pandas", "matplotlib", "pyarrow", "scipy", "rich"}


def test_the_example_of_the_package_works():
    found = doctest.testmod(kvsim)
    assert found.attempted >= 3
    assert found.failed == 0
