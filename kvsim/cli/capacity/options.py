"""The options of `kvsim capacity`: the engines' own flag names."""

import argparse

from kvsim.cli.options import add_output_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.usage = "%(prog)s --model NAME --gpu NAME [option ...] | FILE | --check-csv FILE"
    parser.add_argument(
        "scenario", metavar="FILE", nargs="?", help="take model, GPU, engine and lengths from a scenario"
    )
    _add_questions(parser)
    _add_settings(parser)
    _add_given(parser)
    add_output_options(parser, "print one JSON object, and nothing else")


def _add_questions(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("other ways to ask")
    group.add_argument("--engine-args", metavar="TEXT", help="a pasted command: 'vllm serve ...' or sglang's")
    group.add_argument("--from-log", metavar="FILE", help="read a start-up log, show it beside the plan")
    group.add_argument("--settled", metavar="FILE.json", help="with --from-log: write the overheads it settles there")
    group.add_argument(
        "--expected", metavar="FILE.json", help="with --check-csv: write the errors that plans state there"
    )
    group.add_argument("--overheads", metavar="FILE.json", help="take overheads that --settled wrote")
    group.add_argument(
        "--check-csv", metavar="FILE", help="plan every row of a table of logged start-ups, and score it"
    )
    group.add_argument("-o", metavar="DIR", dest="folder", help="write the plan with figures, or the report of a check")
    group.add_argument(
        "--request-tokens",
        metavar="MEAN[,P95]",
        type=_lengths,
        help="tokens of your requests, prompt and output together: how many run at once",
    )
    group.add_argument(
        "--shared-prefix-tokens", metavar="N", type=_count, default=0, help="tokens that most requests begin with alike"
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings, named as the engines name them")
    group.add_argument("--model", "--model-path", metavar="NAME", help="a name of `kvsim models`, or a config.json")
    group.add_argument("--gpu", metavar="NAME", help="a name of `kvsim gpus`, or a size such as 24GiB")
    group.add_argument("--engine", metavar="NAME@RELEASE", help="vllm@0.19, sglang@0.5, trtllm@1.0, llama.cpp (vllm)")
    for flags, text in (
        (("--tensor-parallel-size", "--tp", "-tp", "--tp-size"), "GPUs that share every layer"),
        (("--pipeline-parallel-size", "--pp", "-pp", "--pp-size"), "stages of layers"),
        (("--data-parallel-size", "--dp", "-dp", "--dp-size"), "replicas, each with a pool of its own"),
        (("--decode-context-parallel-size", "-dcp"), "ranks that share the tokens of a request"),
        (("--max-model-len", "--context-length", "--ctx-size", "-c"), "most tokens of a request"),
        (("--max-num-seqs", "--max-running-requests"), "most sequences of a step"),
        (("--max-num-batched-tokens", "--chunked-prefill-size"), "most tokens of a step"),
        (("--block-size", "--page-size", "--tokens-per-block"), "tokens of a block"),
        (("--num-speculative-tokens",), "tokens that the draft model proposes a step"),
        (("--max-loras",), "adapters that lie ready"),
        (("--max-lora-rank",), "their rank (16)"),
    ):
        group.add_argument(*flags, metavar="N", type=_count, help=text)
    group.add_argument(
        "--gpu-memory-utilization",
        "--mem-fraction-static",
        "--free-gpu-memory-fraction",
        metavar="SHARE",
        dest="utilization",
        type=_number,
        help="the engine's share of the card (TensorRT-LLM: of what is free)",
    )
    group.add_argument("--dtype", metavar="TYPE", default="auto", help="auto, bf16, fp16, fp32")
    group.add_argument(
        "--quantization", "-q", metavar="NAME", help="fp8, int8, awq, gptq, w4a16, mxfp4, gguf-q4_k_m ..."
    )
    group.add_argument("--kv-cache-dtype", metavar="TYPE", default="auto", help="auto, fp8, bf16 ...")
    group.add_argument("--draft-model", metavar="NAME", help="the model that proposes tokens")
    group.add_argument("--enable-dp-attention", action="store_true", help="attention data-parallel, the rest not")
    group.add_argument("--disable-hybrid-kv-cache-manager", action="store_true", help="every layer holds every token")
    group.add_argument("--max-total-tokens", metavar="N", type=_count, help="cap of the pool in tokens (SGLang)")
    group.add_argument("--enforce-eager", action="store_true", help="no CUDA graphs")
    group.add_argument(
        "--cpu-offload-gb", "--cpu-offload", metavar="GIB", type=_number, default=0.0, help="weights kept on the host"
    )
    group.add_argument("--swap-space", metavar="GIB", type=_number, default=0.0, help="host memory for swapped blocks")
    group.add_argument("--used-gib", metavar="GIB", type=_number, default=0.0, help="memory that other processes use")


def _add_given(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("known already, per rank: replaces the estimate; digits mean what a log's mean")
    for name, text in (
        ("gpu-total", "memory of the card as CUDA reports it"),
        ("weights", "loaded weights"),
        ("activation", "activation peak"),
        ("non-torch", "non-torch memory"),
        ("cuda-graph", "CUDA graphs"),
        ("kv-memory", "memory for KV"),
    ):
        group.add_argument(f"--{name}-gib", metavar="GIB", type=gib_digits, help=text)
    group.add_argument("--num-gpu-blocks", "--num-gpu-blocks-override", metavar="N", type=_count, help="blocks")


def _count(text: str) -> int:
    """A whole number, also as `32k` (thousands) or `32K` (1,024s), as vLLM reads them."""
    factor = {"k": 1000, "K": 1024, "m": 10**6, "M": 2**20}.get(text[-1:], 1)
    digits = text[:-1] if factor > 1 else text
    if not digits.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number, e.g. 8192 or 32k")
    return int(digits) * factor


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 on, e.g. 0.9")
    return value


def gib_digits(text: str) -> str:
    """A number of GiB as a log prints it; its decimals say how exact it is."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit() or float(text) >= 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of GiB from 0 on, e.g. 14.99")
    return text


def _lengths(text: str) -> dict[str, int]:
    parts = text.split(",")
    if not 1 <= len(parts) <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is no MEAN[,P95], e.g. 1200,4000")
    counts = [_count(part) for part in parts]
    if not all(counts):
        raise argparse.ArgumentTypeError(f"{text!r} holds a request of no tokens")
    return dict(zip(("mean", "p95"), counts, strict=False))
