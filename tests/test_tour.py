"""The notebook is a Python program whose cells run from top to bottom, with marimo's sliders and without a browser."""

import ast
import importlib.util
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[1] / "scenarios" / "tour.py"


def test_the_notebook_compiles_and_says_how_it_is_opened():
    tree = ast.parse(TOUR.read_text("utf-8"), str(TOUR))
    told = ast.get_docstring(tree)
    assert {"marimo edit", "marimo export html", "python scenarios/tour.py"} <= {
        command for command in ("marimo edit", "marimo export html", "python scenarios/tour.py") if command in told
    }


@pytest.fixture(scope="module")
def ran():
    pytest.importorskip("marimo", reason="marimo, the extra `notebook`, is not installed")
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    tour = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tour)
    _, defined = tour.app.run()
    return defined


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_its_cells_run_and_show_the_chosen_ways_on_the_chosen_pool(ran):
    results = ran["results"]
    assert [result.name for result in results] == ran["chosen"].value == ["contiguous", "paged"]
    assert {result.metrics["pool_tokens"] for result in results} == {ran["pool"].value}
    assert all(result.metrics["arrived"] == 600 for result in results)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_it_shows_the_table_the_figure_and_what_is_not_modelled(ran):
    assert "|  | unit | contiguous | paged |" in ran["summary"]
    assert "TTFT: mean" in ran["summary"]
    assert len(ran["figure"].axes) >= 2
    assert "**Not modelled**" in ran["foot"]
    assert "expected error" in ran["foot"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_its_sliders_reach_what_the_scenario_says(ran):
    for name, given in (("pool", 41_408), ("rate", 2.5)):
        slider = ran[name]
        assert slider.start <= given <= slider.stop
