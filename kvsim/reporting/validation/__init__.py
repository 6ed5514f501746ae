"""What `kvsim validate -o` writes: scores as tables, and a figure of them beside the baselines."""

from kvsim.reporting.validation.report import write_validation

__all__ = ["write_validation"]
