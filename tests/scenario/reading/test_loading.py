"""One YAML file: what is read as what, and each way in which a file cannot be a scenario."""

from pathlib import Path

import pytest

from kvsim.errors import InputError
from kvsim.scenario.reading.loading import parse_document, parse_value, read_document


def test_values_follow_yaml_1_2() -> None:
    text = "{a: 1e9, b: no, c: 8/s, d: 0o17, e: 010, f: ~, g: 2024-01-01, h: 1_000, i: '3', j: true, k: 0x1f}"
    assert parse_document("f", text).data == {
        "a": 1e9,
        "b": "no",
        "c": "8/s",
        "d": 15,
        "e": 10,
        "f": None,
        "g": "2024-01-01",
        "h": 1000,
        "i": "3",
        "j": True,
        "k": 31,
    }


def test_every_key_knows_its_line() -> None:
    document = parse_document("f", "a: 1\nb:\n  c: 2\n  d: {e: 3}\n")
    assert document.lines == {"a": 1, "b": 2, "b.c": 3, "b.d": 4, "b.d.e": 4}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: a: 3 is given a second time (first on line 1)"),
        ("b: {c: 1,\n c: 2}\n", "f:2: b.c: 2 is given a second time (first on line 1)"),
        ("<<: {a: 1}\n", "f:1: << is no key here; use extends"),
        ("~: 1\n", "f:1: ~ is no key; keys are words"),
        ("a: !foo 1\n", "f:1: a: !foo 1 has a YAML tag"),
        ("a: &x [*x]\n", "f:1: a: a value is nested more than 20 deep"),
    ],
)
def test_a_key_that_is_wrong_is_noted_with_its_line(text: str, says: str) -> None:
    noted = [mistake.text({}) for mistake in parse_document("f", text).mistakes]
    assert len(noted) == 1
    assert noted[0].startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f: the file is empty"),
        ("# nothing\n", "f: the file is empty"),
        ("- 1\n", "f:1: a sequence is not a mapping"),
        ("hello\n", "f:1: hello is not a mapping"),
        ("a: 1\nb: [1,\n", "f:2: not valid YAML"),
        ("a:\n\t- b\n", "f:2: not valid YAML: found character '\\t'"),
        ("a: 1\n---\nb: 2\n", "f:2: not valid YAML: but found another document"),
        ("a: *q\n", "f:1: not valid YAML: found undefined alias"),
        ("a: \x01\n", "f: not valid YAML: unacceptable character"),
        ("[" * 30, "f:1: not valid YAML"),
    ],
)
def test_a_text_that_is_no_mapping_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        parse_document("f", text)
    assert str(error.value).startswith(says)


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(InputError, match="do aliases multiply"):
        parse_document("f", "\n".join(lines))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.yaml: cannot be read \(No such file or directory\)"):
        read_document(str(tmp_path / "gone.yaml"))


def test_a_file_that_may_not_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(InputError, match=r"s\.yaml: cannot be read \(Permission denied\)"):
        read_document("s.yaml")


def test_a_folder_is_refused_and_a_file_in_it_named(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("a: 1\n")
    with pytest.raises(InputError, match=r"this is a folder, not a scenario file; .*one\.yaml"):
        read_document(str(tmp_path))


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(InputError, match=r"latin\.yaml:2: this is not UTF-8 text"):
        read_document(str(tmp_path / "latin.yaml"))


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(str(tmp_path / "bom.yaml")).data == {"a": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [("12/s", "12/s"), ("3", 3), ("{a: 1}", {"a": 1}), ("", None), ("null", None), ("'3'", "3")],
)
def test_an_override_is_a_piece_of_yaml(text: str, value: object) -> None:
    assert parse_value(text) == value


@pytest.mark.parametrize("text", ["{", "[}", "a: b: c", "@", "%", "'", '"', "&", "*", "!!int x: [", "> \n\x00"])
def test_broken_yaml_is_refused_in_one_line(text: str) -> None:
    for parse in (parse_value, lambda text: parse_document("f", text)):
        with pytest.raises(InputError) as error:
            parse(text)
        assert len(str(error.value).splitlines()) == 1
