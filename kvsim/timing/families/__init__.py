"""Kernel families, one file each: formulas with few physical parameters, fitted to measurements elsewhere."""

from kvsim.timing.families.collectives import AllReduce
from kvsim.timing.families.decode_attention import DecodeAttention
from kvsim.timing.families.device import Device, device
from kvsim.timing.families.interface import Family, Parameter
from kvsim.timing.families.linear import Linear
from kvsim.timing.families.measured import measured_family
from kvsim.timing.families.moe import MixtureOfExperts
from kvsim.timing.families.prefill_attention import PrefillAttention

__all__ = [
    "AllReduce",
    "DecodeAttention",
    "Device",
    "Family",
    "Linear",
    "MixtureOfExperts",
    "Parameter",
    "PrefillAttention",
    "device",
    "family",
]


def family(name: str) -> Family:
    """The family of that name, such as `linear:fp8`. KeyError for no family."""
    kind, _, variant = name.partition(":")
    if kind == "linear":
        return Linear(variant)
    if kind == "decode_attention":
        return DecodeAttention(variant)
    if kind == "prefill_attention":
        return PrefillAttention(variant == "packed")
    if kind == "all_reduce":
        return AllReduce(variant)
    if kind == "moe":
        return MixtureOfExperts(variant)
    measured = measured_family(name)
    if measured is None:
        raise KeyError(name)
    return measured
