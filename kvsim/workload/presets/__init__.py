"""Traffic by name: lengths, sessions and arrivals as recordings have them.

`law` is the length law of a preset, `arrivals` its process; `data` holds the facts with their sources.
"""

from kvsim.workload.presets.files import arrival_preset, arrival_presets, length_preset, length_presets

__all__ = ["arrival_preset", "arrival_presets", "length_preset", "length_presets"]
