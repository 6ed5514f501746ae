"""ServeGen's clients: both files of each, in a folder or an archive; laws read as numbers, never run."""

import io
import json
import random
import tarfile
from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.workload.readers.clients.servegen import Population, Window, is_population
from kvsim.workload.readers.files.source import Source
from kvsim.workload.statistics.population import inspect_population

WINDOWS = "0,2.0,1.5,Gamma,0.5,1.0\n600,0,0,,0,0\n1200,1.0,1.0,Weibull,1.0,1.0\n"
LAWS = {"0": {"input_tokens": "{10: 0.25, 20: 0.75}", "output_tokens": "{5: 1.0}", "reason_ratio": "{}"}}


def files(*numbers, windows=WINDOWS, laws=LAWS):
    for number in numbers:
        yield f"lang/m/chunk-{number}-dataset.json", json.dumps(laws)
        yield f"lang/m/chunk-{number}-trace.csv", windows


def folder(path, pairs):
    for name, text in pairs:
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return path / "lang" / "m"


def archive(path, pairs, mode="w:gz"):
    place = path / "clients.tar.gz"
    with tarfile.open(place, mode) as tar:
        for name, text in pairs:
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return place


def read(path):
    population = Population(Path(path), str(path))
    return list(population), population


@pytest.mark.parametrize("pack", [folder, archive, lambda path, pairs: archive(path, pairs, "w")])
def test_clients_are_read_from_a_folder_or_an_archive(tmp_path, pack):
    path = pack(tmp_path, files(0, 1))
    assert is_population(Source(path, "x").head)
    clients, population = read(path)
    assert sorted(client.number for client in clients) == [0, 1]
    assert (population.clients, population.incomplete) == (2, 0)
    assert clients[0].windows[:2] == [Window(0, 2, 1.5, "Gamma", 0.5, 1), Window(600, 0, 0, "", 0, 0)]
    law = clients[0].laws[0]["input_tokens"]
    assert (list(law.values), list(law.weights)) == ([10, 20], [0.25, 0.75])


def test_a_client_that_lacks_a_file_is_left_out_and_counted(tmp_path):
    pairs = [pair for pair in files(0, 1) if pair[0] != "lang/m/chunk-1-trace.csv"]
    clients, population = read(folder(tmp_path, pairs))
    assert [client.number for client in clients] == [0]
    assert population.incomplete == 1


def test_statistics_weigh_clients_by_the_requests_they_send(tmp_path):
    pairs = [*files(0), *files(1, windows="0,6,3,Gamma,1,1\n600,6,3,Gamma,1,1\n1200,6,3,Gamma,1,1\n")]
    busy = {"0": {"input_tokens": "{100: 2}", "output_tokens": "{7: 1}"}}
    pairs[2] = (pairs[2][0], json.dumps(busy))
    found, laws = inspect_population(Population(folder(tmp_path, pairs), "x"))
    # 1,800 requests of client 0 and 10,800 of client 1 in 1,800 s.
    assert (found.span_s, found.rate_per_s) == (1800, 7)
    assert found.top_share == pytest.approx(6 / 7)
    assert found.cv == 3
    assert laws.law("input_tokens") == pytest.approx({10: 450, 20: 1350, 100: 10800})
    assert found.fields["input_tokens"].mean == pytest.approx((4500 + 27000 + 1_080_000) / 12600)
    assert (found.fields["input_tokens"].p50, found.fields["input_tokens"].max) == (100, 100)
    assert "reason_ratio" not in found.fields


@pytest.mark.parametrize(
    ("windows", "law", "said"),
    [
        ("0,2,1\n", None, "chunk-0-trace.csv: row 1: 3 columns, not 6"),
        ("0,2,1,Pareto,1,1\n", None, "'Pareto' is no family of gaps; write Gamma, Weibull or nothing"),
        ("0,-2,1,Gamma,1,1\n", None, "row 1: '-2' is no number of at least 0"),
        ("0,nan,1,Gamma,1,1\n", None, "row 1: 'nan' is no number of at least 0"),
        (WINDOWS, "__import__('os').abort()", "is no dictionary of value: probability in a string"),
        (WINDOWS, "{1: __import__('os').abort()}", "is no number of at least 0"),
        (WINDOWS, "{1: 0.5, 2}", "window 0, input_tokens: row 2: '' is no number"),
        (WINDOWS, "{1: NaN}", "is no number of at least 0"),
        (WINDOWS, "{1e308: 1e308}", "row 1: '1e308' is no number of at least 0, and at most 1e+15"),
        ("0,1e308,1,Gamma,1,1\n", None, "row 1: '1e308' is no number of at least 0, and at most 1e+15"),
        (f"0,{'1' * 200_000},1,Gamma,1,1\n", None, "line 1 is not CSV (field larger than field limit"),
        (WINDOWS, 5, "is no dictionary of value: probability in a string"),
    ],
)
def test_what_is_wrong_in_a_client_is_named_with_its_file(tmp_path, windows, law, said):
    laws = LAWS if law is None else {"0": {"input_tokens": law}}
    with pytest.raises(InputError) as caught:
        read(folder(tmp_path, files(0, windows=windows, laws=laws)))
    assert said in str(caught.value)
    assert "chunk-0-" in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"0": 5}', '{"0": {"input_tokens": NaN}}', "\x00"])
def test_laws_that_are_no_json_of_windows_are_refused(tmp_path, text):
    pairs = dict(files(0)) | {"lang/m/chunk-0-dataset.json": text}
    with pytest.raises(InputError, match=r"chunk-0-dataset\.json: "):
        read(folder(tmp_path, pairs.items()))


def said_of(path, reading):
    """Lines of the message about a file, which begins with its name; None where it can be read."""
    try:
        reading(path)
    except InputError as error:
        return str(error).count("\n") + 1 if str(error).startswith(str(path)) else 0
    return None


def test_a_damaged_archive_is_refused_in_one_line(tmp_path):
    whole = archive(tmp_path, files(0, 1)).read_bytes()
    draws = random.Random("archive")
    path = tmp_path / "damaged.tar.gz"
    for _ in range(60):
        at = draws.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 + draws.randrange(255))]) + whole[at + 1 :])
        assert said_of(path, read) in (None, 1)
    for end in range(0, len(whole), 25):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError):
            read(path)
