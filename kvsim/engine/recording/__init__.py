"""Everything that is written down about a run, from one replica's side."""

from kvsim.engine.recording.recording import Recording

__all__ = ["Recording"]
