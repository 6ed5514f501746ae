"""`kvsim trace convert`: streams requests from one form to another."""

import argparse
import sys
from pathlib import Path

from kvsim.cli.trace.options import recording


def convert_trace(args: argparse.Namespace) -> int:
    """Read, write, and say on standard error what was left behind. A file is whole or not there."""
    from kvsim.workload.convert.writers import WRITERS, Losses

    source = recording(args)
    losses = Losses()
    lines = WRITERS[args.to](source, losses, source.block_tokens)
    if args.target is None:
        for line in lines:
            sys.stdout.write(line)
    else:
        from kvsim.reporting.run_folder import check_file

        check_file(args.target, "-o")
        target = Path(args.target)
        part = target.with_name(f".{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    told = [f"{losses.written:,} requests of {source.trace} (format {source.report.format}) as {args.to}"]
    told += [f"{count:,} x {reason}" for reason, count in source.report.dropped.items()]
    told += [f"{count:,} x {reason}" for reason, count in losses.reasons.items()]
    for line in told:
        print(line, file=sys.stderr)
    return 0
