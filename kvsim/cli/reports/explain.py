"""`kvsim explain`: one request's KV life cycle, with every number."""

import argparse
from typing import Any

from kvsim.cli.options import add_output_options, whole


def add(subparsers: Any) -> None:
    """Say what the verb takes."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "explain",
        help="walk through one request's KV: allocate, prefill, decode, release",
        description="Walk through the KV of one request on a model small enough to check by hand, then size a request "
        "of a real model: by the formula, and in an engine.",
        allow_abbrev=False,
    )
    parser.add_argument("--model", metavar="NAME", help="the real model; default: qwen2.5-1.5b")
    parser.add_argument("--prompt-tokens", metavar="N", type=whole, help="its prompt; default: 200")
    parser.add_argument("--output-tokens", metavar="M", type=whole, help="its output; default: 100")
    parser.add_argument(
        "--kv-dtype", metavar="TYPE", default="bf16", help="number format of its KV: bf16, fp8, ...; default: bf16"
    )
    parser.add_argument("-o", metavar="DIR", dest="folder", help="write a figure of each phase and a README.md there")
    add_output_options(parser, "print every number as JSON, and nothing else")
    parser.set_defaults(execute=execute)


def execute(args: argparse.Namespace) -> int:
    """Work it out, write where asked, print."""
    from kvsim.catalog.models import model
    from kvsim.cli.options import one_thread
    from kvsim.errors import InputError
    from kvsim.study.explain import request_bytes as sized

    one_thread()
    if args.folder is not None:
        from kvsim.reporting.run_folder import check_writable

        check_writable(args.folder)
    try:
        request = sized.request_bytes(
            model(sized.EXERCISE_MODEL if args.model is None else args.model),
            args.prompt_tokens or sized.EXERCISE_PROMPT_TOKENS,
            args.output_tokens or sized.EXERCISE_OUTPUT_TOKENS,
            kv_dtype=args.kv_dtype,
        )
    except ValueError as error:
        raise InputError(f"--{str(error).replace('_', '-', 1)}") from error
    from kvsim.study.explain.example import walk

    found = walk()
    if args.folder is not None:
        from kvsim.reporting.explain import write_explanation

        write_explanation(found, request, args.folder)
    if args.json:
        from kvsim.cli.show import print_json
        from kvsim.study.explain.record import record

        print_json(record(found, request))
        return 0
    from kvsim.cli.show import console, print_text
    from kvsim.reporting.explain import sections

    out = console(args)
    for section in sections(found, request):
        print_text(out, section.title, "bold")
        print_text(out, section.words)
        for line in section.lines:
            out.print(line, markup=False, no_wrap=True)
        out.print()
    if args.folder is not None:
        print(f"written to {args.folder}")
    return 0
