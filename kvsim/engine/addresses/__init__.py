"""The address recorder: which slots of the pool hold what for whom, change by change; only where somebody asks."""

from kvsim.engine.addresses.recorder import AddressRecorder

__all__ = ["AddressRecorder"]
