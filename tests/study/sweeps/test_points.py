"""Points of a sweep: grids, lists and Latin hypercubes, and what is refused of them."""

import pytest

from kvsim.errors import InputError
from kvsim.study.sweeps.lists import list_of
from kvsim.study.sweeps.points import grid, grid_of, hypercube_of, latin_hypercube, listed
from kvsim.study.values import quantity


def changes(points):
    return [dict(point.changes) for point in points]


def test_a_grid_has_every_combination_the_last_key_fastest():
    assert changes(grid_of(["workload.rate=2/s,4/s", "pool.tokens=100,200"])) == [
        {"workload.rate": "2/s", "pool.tokens": 100},
        {"workload.rate": "2/s", "pool.tokens": 200},
        {"workload.rate": "4/s", "pool.tokens": 100},
        {"workload.rate": "4/s", "pool.tokens": 200},
    ]


def test_a_value_of_a_grid_may_be_a_mapping_with_commas_of_its_own():
    [first, second] = changes(grid_of(["allocator=contiguous,{name: paged, block_size: 1}"]))
    assert first == {"allocator": "contiguous"}
    assert second == {"allocator": {"name": "paged", "block_size": 1}}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["workload.rate="], "--grid: workload.rate: has no values; give some, such as workload.rate=A,B,C"),
        (["workload.rate"], "--grid: 'workload.rate' is not KEY=A,B,C"),
        (["workload.rate=1/s", "workload.rate=2/s"], "--grid: workload.rate: is given twice"),
        (["workload.rate=1/s,1/s"], "--grid: workload.rate: 1/s comes twice"),
        (["allocator={name: paged"], "its values are no YAML"),
        ([], "--grid: is empty"),
    ],
)
def test_a_grid_that_is_none_is_refused(texts, said):
    with pytest.raises(InputError) as error:
        grid_of(texts)
    assert said in str(error.value)


def test_the_values_of_a_grid_in_python_are_lists():
    with pytest.raises(InputError, match="'4/s' is no list of values"):
        grid({"workload.rate": "4/s"})


def test_a_list_in_python_has_a_place_for_each_point():
    assert [point.origin.place for point in listed([{"seed": 1}, {"seed": 2}])] == ["points:1", "points:2"]
    with pytest.raises(InputError, match="points:2: changes nothing"):
        listed([{"seed": 1}, {}])
    with pytest.raises(InputError, match="points: is empty"):
        listed([])


def test_a_csv_has_keys_in_its_first_line_and_empty_cells_change_nothing(tmp_path):
    file = tmp_path / "points.csv"
    file.write_text('workload.rate, allocator\n4/s,"{name: paged, block_size: 8}"\n\n,contiguous\n')
    points = list_of(str(file))
    assert changes(points) == [
        {"workload.rate": "4/s", "allocator": {"name": "paged", "block_size": 8}},
        {"allocator": "contiguous"},
    ]
    assert [point.origin.place for point in points] == [f"{file}:2", f"{file}:4"]


def test_json_lines_are_known_by_name_or_by_their_first_letter(tmp_path):
    for name in ("points.jsonl", "points.txt"):
        file = tmp_path / name
        file.write_text('{"workload.rate": "4/s"}\n{"pool.tokens": 100}\n')
        assert changes(list_of(str(file))) == [{"workload.rate": "4/s"}, {"pool.tokens": 100}]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "has no points"),
        ("a.csv", "workload.rate\n", "has no points"),
        ("a.csv", "seed,seed\n1,2\n", "a.csv:1: a key is empty or comes twice"),
        ("a.csv", "seed,gpu\n1\n", "a.csv:2: has 1 cells and the first line 2"),
        ("a.csv", "seed,gpu\n,\n1,\n[,\n", "a.csv:4: a cell is no YAML value"),
        ("a.csv", "gpu\n[\n", "a.csv:2: a cell is no YAML value"),
        ("a.csv", "gpu\n" + "x" * 200_000, "a.csv:2: is not CSV"),
        ("a.jsonl", "{\n", "a.jsonl:1: is not JSON"),
        ("a.jsonl", '{"gpu": ' + "[" * 100_000, "a.jsonl:1: is not JSON"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: changes nothing"),
        ("none.csv", None, "cannot be read"),
    ],
)
def test_a_list_that_is_none_is_refused_with_its_line(tmp_path, monkeypatch, name, text, said):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        list_of(name)
    assert said in str(error.value)


def test_a_latin_hypercube_has_one_point_in_each_slice_of_each_range():
    count = 40
    points = changes(latin_hypercube(count, {"workload.rate": "2/s..10/s", "pool.tokens": "100..100000:log"}, seed=3))
    rates = [quantity(point["workload.rate"])[0] for point in points]
    assert sorted(int((rate - 2) / 8 * count) for rate in rates) == list(range(count))
    tokens = [point["pool.tokens"] for point in points]
    assert all(isinstance(number, int) for number in tokens)
    # Equal slices of the logarithm, up to the rounding to whole tokens.
    edges = [100 * 1000 ** (slice_ / count) for slice_ in range(count + 1)]
    in_order = sorted(tokens)
    assert all(
        low - 0.5 <= number <= high + 0.5 for low, number, high in zip(edges[:-1], in_order, edges[1:], strict=True)
    )


def test_the_draws_of_a_key_depend_on_the_seed_and_the_key_alone():
    alone = latin_hypercube(5, {"seed": "1..1000"}, seed=1)
    beside = latin_hypercube(5, {"pool.tokens": "1..1000", "seed": "1..1000"}, seed=1)
    assert [point.changes["seed"] for point in alone] == [point.changes["seed"] for point in beside]
    assert changes(alone) != changes(latin_hypercube(5, {"seed": "1..1000"}, seed=2))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["many", "seed=1..2"], "'many' is no number of points"),
        (["²", "seed=1..2"], "'²' is no number of points"),
        (["0", "seed=1..2"], "0 points are none"),
        (["5"], "no key is given"),
        (["5", "seed"], "'seed' is not KEY=LOW..HIGH"),
        (["5", "seed=1..2", "seed=3..4"], "is given twice"),
        (["5", "seed=1"], "seed: '1' is no range"),
        (["5", "workload.rate=1/s..2/min"], "is no range; write LOW..HIGH in one unit"),
        (["5", "seed=2..1"], "cannot be divided; write the smaller end first"),
        (["5", "seed=0..1:log"], "cannot be divided; start above 0"),
    ],
)
def test_a_hypercube_that_is_none_is_refused(texts, said):
    with pytest.raises(InputError) as error:
        hypercube_of(texts)
    assert said in str(error.value)
    assert str(error.value).startswith("--latin-hypercube: ")
