"""`kvsim explain`: short enough for a student, in 80 columns, every number from JSON too, and what is refused."""

import json

import pytest

from kvsim.cli.main import main


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_it_walks_through_the_four_phases_in_80_columns_with_the_numbers_of_the_example(capsys):
    assert main(["explain"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    assert [line for line in out.splitlines() if line[:1].isdigit() and line[1:2] == " "] == [
        "1 Allocate",
        "2 Prefill",
        "3 Decode",
        "4 Release or keep",
    ]
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "I 1.000 - - 1.000 - - 1.000 0.000 1.000 0.000" in lines
    assert "love 0.500 1.000 - 0.378 0.622 - 0.378 0.622 1.000 0.000" in lines
    assert lines.count("AI 0.500 0.500 1.500 0.212 0.212 0.576 0.788 0.788 0.424 0.576") == 2
    assert "weights 0.2430 0.2318 0.2656 0.2595" in lines
    assert "output 0.7214 0.6859 0.6171 0.2656" in lines


def test_it_says_what_a_student_must_take_away(capsys):
    main(["explain"])
    said = " ".join(capsys.readouterr().out.split())
    for sentence in (
        "Only the last position predicts",
        "Q is used once and never cached",
        "decode needs no mask",
        "Each layer has a cache of its own",
        'are 0.05, great 0.08, models 0.12, very 0.63), greedily "very"',
        "finds 2 tokens (whole blocks only) and skips their rows",
        "never computes the KV of the token sampled last",
    ):
        assert sentence in said


def test_the_exercise_shows_both_totals(capsys):
    main(["explain"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "prefill, 200 tokens 5,734,400 B" in lines
    assert "each token 28,672 B" in lines
    assert "by the formula, 300 tokens 8,601,600 B" in lines
    assert "in an engine, 299 tokens 8,572,928 B" in lines


def test_json_is_one_object_with_every_number(capsys):
    assert main(["explain", "--model", "deepseek-v3", "--prompt-tokens", "1000", "--output-tokens", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["example"]["prefill"]["scores"] == [[1, None, None], [0.5, 1, None], [0.5, 0.5, 1.5]]
    assert found["example"]["decode"][0]["operators"][-1]["flops_without_cache"] == 722
    assert found["example"]["memory"]["paged_prefix_caching"][1]["hit_tokens"] == 2
    assert found["request"]["bytes_per_token"] == 61 * (512 + 64) * 2
    assert found["request"]["engine_bytes"] == 1004 * 61 * (512 + 64) * 2


def test_windows_tell_what_a_token_adds_once_they_are_full(capsys):
    assert main(["explain", "--model", "gemma-2-9b", "--prompt-tokens", "6000"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "once windows are full 172,032 B" in said
    assert "keep the last 4,096 tokens at most" in said


def test_the_folder_has_a_figure_of_each_phase_and_a_readme_and_the_same_bytes_each_time(tmp_path, capsys):
    for name in ("one", "two"):
        assert main(["explain", "-o", str(tmp_path / name)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"written to {tmp_path / 'two'}"
    stems = ("allocate", "decode", "prefill", "release")
    names = sorted(["README.md", *(f"{stem}.{form}" for stem in stems for form in ("png", "svg"))])
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    readme = (tmp_path / "one" / "README.md").read_text()
    assert all(f"({stem}.png)" in readme for stem in stems)
    assert "8,572,928 B" in readme


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "qwen2.5-1.6b"], "qwen2.5-1.5b"),
        (["--kv-dtype", "fp7"], "--kv-dtype: unknown type 'fp7'; must be one of"),
        (["--model", "opt-6.7b", "--prompt-tokens", "2048"], "has a context of 2,048; give fewer"),
        (["--model", "llama-4-scout", "--prompt-tokens", "9000"], "chunked layers"),
        (["-o", ""], "-o ''"),
        (["--model", ""], "unknown model ''"),
    ],
)
def test_what_cannot_be_told_is_refused_with_a_reason(arguments, said, capsys):
    assert main(["explain", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--prompt-tokens", "--output-tokens"])
def test_lengths_below_one_are_no_lengths(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["explain", option, "0"])
    assert "'0' is no whole number of at least 1" in capsys.readouterr().err
