"""Commands as people paste them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvsim.capacity.arguments import parse_command
from kvsim.errors import InputError


def settings(text):
    return dict(parse_command(text).settings)


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve Qwen/Qwen3-8B --max-num-seqs 64",
        "vllm serve --model Qwen/Qwen3-8B --max_num_seqs=64",
        "/opt/venv/bin/vllm serve Qwen/Qwen3-8B --max-num-seqs 64 > vllm.log 2>&1 &",
        "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B --max-num-seqs 64",
        "python -m vllm.entrypoints.cli.main serve Qwen/Qwen3-8B --max-num-seqs 64",
        "nohup uv run vllm serve 'Qwen/Qwen3-8B' --max-num-seqs 64 | tee log",
        "vllm serve Qwen/Qwen3-8B \\\n  --max-num-seqs 64",
        "vllm serve Qwen/Qwen3-8B \\   \n  --max-num-seqs 64  # half the default",
        "vllm serve\n  Qwen/Qwen3-8B\n  --max-num-seqs 64\n",
        "docker run --gpus all vllm/vllm-openai --model Qwen/Qwen3-8B --max-num-seqs 64",
        "docker run --rm -it vllm/vllm-openai:latest Qwen/Qwen3-8B --max-num-seqs 64",
        "podman run --entrypoint vllm some/image:1 serve Qwen/Qwen3-8B --max-num-seqs 64",
        "docker run --entrypoint bash vllm/vllm-openai -c 'vllm serve Qwen/Qwen3-8B --max-num-seqs 64'",
        "taskset -c 0-7 vllm serve Qwen/Qwen3-8B --max-num-seqs 64",
    ],
)
def test_one_server_is_started_in_many_ways(text):
    command = parse_command(text)
    assert (command.engine, command.model, command.settings) == ("vllm", "Qwen/Qwen3-8B", {"max_num_seqs": 64})


@pytest.mark.parametrize(
    "text",
    [
        "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 4",
        "python3 -m sglang.launch_server --model Qwen/Qwen3-8B --tensor-parallel-size 4",
        "sglang serve --model-path Qwen/Qwen3-8B --tp-size=4",
        "docker run --shm-size 32g lmsysorg/sglang:latest python3 -m sglang.launch_server --model Qwen/Qwen3-8B --tp 4",
    ],
)
def test_sglang_is_started_in_several_ways(text):
    command = parse_command(text)
    assert (command.engine, command.model, command.settings) == ("sglang", "Qwen/Qwen3-8B", {"tensor_parallel": 4})


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.19.0", "0.19.0"),
        ("registry.example/mirror/vllm-openai:v0.26.0-cu129", "0.26.0"),
        ("vllm/vllm-openai:nightly", None),
        ("vllm/vllm-openai", None),
        ("vllm/vllm-openai@sha256:0fec", None),
        ("lmsysorg/sglang:v0.5.6.post1-cu129", "0.5.6.post1"),
    ],
)
def test_the_release_is_read_from_the_images_tag(image, version):
    # A name that holds the engine's, and a mount, are not taken for the image.
    assert parse_command(f"docker run --name vllm -v /srv/vllm:/models -d {image} --host 0.0.0.0").version == version


def test_variables_in_front_and_in_the_container_are_the_environment():
    text = (
        "CUDA_VISIBLE_DEVICES=0,1 VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS=0 docker run -e HF_HOME=/models "
        "--env VLLM_USE_V1=1 -e SECRET vllm/vllm-openai --model m"
    )
    assert parse_command(text).environment == {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "0",
        "HF_HOME": "/models",
        "VLLM_USE_V1": "1",
    }
    assert parse_command("export A=1\nB=2 vllm serve m").environment == {"A": "1", "B": "2"}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("-tp 2 -pp 4 -dp 3 -dcp 2", {"tensor": 2, "pipeline": 4, "data": 3, "decode_context": 2}),
        ("--tensor-parallel 2", {"tensor": 2}),  # a beginning that only one flag has
    ],
)
def test_short_names_of_the_engine_are_known(flags, expected):
    assert settings(f"vllm serve m {flags}") == {f"{name}_parallel": value for name, value in expected.items()}


@pytest.mark.parametrize(
    ("flag", "tokens"),
    [
        ("8192", 8192),
        ("32k", 32_000),
        ("32K", 32_768),
        ("25.6k", 25_600),
        ("1M", 1_048_576),
        ("auto", None),
        ("-1", None),
    ],
)
def test_sizes_are_read_as_the_engine_reads_them(flag, tokens):
    assert settings(f"vllm serve m --max-model-len {flag}").get("max_model_len") == tokens


def test_switches_have_a_form_that_turns_them_off():
    assert settings("vllm serve m --enable-prefix-caching") == {"enable_prefix_caching": True}
    assert settings("vllm serve m --no-enable-prefix-caching") == {"enable_prefix_caching": False}
    assert settings("vllm serve m --no_enable_prefix_caching") == {"enable_prefix_caching": False}
    assert settings("vllm serve m --enable-chunked-prefill=False") == {"enable_chunked_prefill": False}
    assert settings("vllm serve m --enable-chunked-prefill false") == {"enable_chunked_prefill": False}
    assert settings("vllm serve m --disable-hybrid-kv-cache-manager") == {"hybrid_kv_cache": False}
    assert settings("sglang serve --model m --disable-radix-cache") == {"enable_prefix_caching": False}


def test_a_draft_model_is_read_from_json_dots_or_flags():
    expected = {"draft_model": "d", "speculative_method": "eagle3", "speculative_tokens": 3}
    given = '\'{"model": "d", "method": "eagle3", "num_speculative_tokens": 3}\''
    assert settings(f"vllm serve m --speculative-config {given}") == expected
    dots = (
        "--speculative-config.model d --speculative-config.method=eagle3 --speculative-config.num-speculative-tokens 3"
    )
    assert settings(f"vllm serve m {dots}") == expected
    assert settings("vllm serve m --speculative-model d --num-speculative-tokens 3") == {
        "draft_model": "d",
        "speculative_tokens": 3,
    }
    assert settings(
        "sglang serve --model m --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
        "--speculative-num-draft-tokens 3"
    ) == {"draft_model": "d", "speculative_method": "EAGLE3", "speculative_tokens": 3}


def test_memory_settings_are_read_in_their_units():
    text = "--cpu-offload-gb 10 --swap-space 4 --kv-cache-memory-bytes 13876M --gpu-memory-utilization .92"
    assert settings(f"vllm serve m {text}") == {
        "cpu_offload_gib": 10,
        "swap_space_gib": 4,
        "kv_memory_bytes": 13876 * 2**20,
        "gpu_memory_utilization": 0.92,
    }


def test_prompts_in_one_piece_have_no_chunk():
    assert settings("sglang serve --model m --chunked-prefill-size -1") == {"enable_chunked_prefill": False}
    assert settings("sglang serve --model m --chunked-prefill-size 4096") == {"max_num_batched_tokens": 4096}


def test_every_flag_is_listed_with_what_is_done_with_it():
    flags = parse_command(
        "vllm serve m -tp 2 --port 8000 --served-model-name a b --enable-eplb -O3 --kv-transfer-config '{\"a\": 1}'"
    ).flags
    assert [(flag.name, flag.value, flag.status) for flag in flags] == [
        ("MODEL", "m", "used"),
        ("-tp", "2", "used"),
        ("--port", "8000", "ignored"),
        ("--served-model-name", "a b", "ignored"),
        ("--enable-eplb", None, "not modelled"),
        ("-O", "3", "not modelled"),
        ("--kv-transfer-config", '{"a": 1}', "not modelled"),
    ]
    assert all(flag.why for flag in flags)


@pytest.mark.parametrize(
    ("written", "value", "closest"),
    [("--max-num-seq-s 4", "4", "--max-num-seqs"), ("--tensor-paralel-size=2", "2", "--tensor-parallel-size")],
)
def test_an_unknown_flag_is_not_modelled_and_names_the_closest(written, value, closest):
    command = parse_command(f"vllm serve m {written} --port 1")
    unknown = command.flags[1]
    assert (unknown.value, unknown.status) == (value, "not modelled")
    assert unknown.why == f"not a flag that kvsim knows; the closest is {closest}"
    assert command.settings == {}
    assert len(command.flags) == 3


def test_an_unknown_flag_like_none_names_none():
    assert parse_command("vllm serve m --zzqqxx").flags[1].why == "not a flag that kvsim knows"


def test_the_last_of_a_repeated_flag_counts():
    assert settings("vllm serve m --max-num-seqs 1 --max-num-seqs 2") == {"max_num_seqs": 2}


def test_a_value_that_nothing_hangs_on_may_have_any_form():
    command = parse_command("vllm serve m --limit-mm-per-prompt image=2 --compilation-config.mode none -cc.x.y 3")
    assert [flag.value for flag in command.flags[1:]] == ["image=2", "none", "3"]
    assert command.settings == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("vllm serve m --max-num-seqs lots", r"--max-num-seqs 'lots' is wrong; write a whole number of at least 1"),
        ("vllm serve m --max-num-seqs 0", r"--max-num-seqs '0' is wrong; write a whole number of at least 1"),
        ("vllm serve m --max-num-seqs 1k", r"--max-num-seqs '1k' is wrong"),  # vLLM takes no k there
        ("vllm serve m --max-model-len 1.5K", r"--max-model-len '1\.5K' is wrong; write .* 25\.6k"),
        ("vllm serve m --max-model-len 1.5", r"--max-model-len '1\.5' is wrong"),
        ("vllm serve m --gpu-memory-utilization 90", r"'90' is wrong; write a share above 0 and at most 1"),
        ("vllm serve m --gpu-memory-utilization nan", r"'nan' is wrong; write a share"),
        ("vllm serve m --swap-space 4GiB", r"--swap-space '4GiB' is wrong; write a number of GiB without a unit"),
        ("vllm serve m --swap-space -4", r"--swap-space '-4' is wrong"),
        ("vllm serve m --enforce-eager=maybe", r"--enforce-eager 'maybe' is wrong; write no value, or true or false"),
        (
            "vllm serve m --speculative-config {a:1}",
            r"--speculative-config '\{a:1\}' is wrong; write JSON in single quotes",
        ),
        ("vllm serve m --max-num-seqs --port 1", r"--max-num-seqs has no value"),
        ("vllm serve m --max-num-seqs", r"--max-num-seqs has no value"),
        ("sglang serve --model m --chunked-prefill-size -2", r"'-2' is wrong; write .* or -1 for prompts in one piece"),
        ("vllm serve m --port 1 curl http://x", r"'curl' after --port belongs to no flag; paste one command"),
        ("sglang serve m", r"'m' belongs to no flag"),
        ("vllm serve 'm", r"no closing quotation"),
        (
            "llama-server -m m.gguf",
            r"no engine in 'llama-server -m m.gguf'; paste the whole command, such as `vllm serve",
        ),
        ("--tensor-parallel-size 2", r"no engine in"),
        ("docker run --rm ubuntu ls", r"no engine in"),
        ("docker run", r"no engine in"),
        ("", r"no engine in ''"),
    ],
)
def test_what_cannot_be_read_says_what_would_be_right(text, message):
    with pytest.raises(InputError, match=f"^engine arguments: .*{message}"):
        parse_command(text)


PIECES = (
    "vllm serve ", "m", " --max-num-seqs ", "=", "1", "-1", "99999999999999999999", "1.5k", " --speculative-config",
    ".model ", ".a.b ", '"', "'", "{", "}", "[" , " --no-", "enable-lora", " --served-model-name ", "docker run ",
    "vllm/vllm-openai:v0.19.0 ", "bash -c ", " -O", " -tp", "\n", "\\\n", " & ", "A=1 ", " --zz ",
)  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=4)), max_size=25).map("".join))
def test_whatever_is_pasted_is_read_or_refused(text):
    for command in (text, f"vllm serve {text}", f"sglang serve {text}"):
        try:
            assert parse_command(command).engine in ("vllm", "sglang")
        except InputError:
            continue
