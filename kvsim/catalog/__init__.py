"""Facts with a source: models and their footprint, GPUs, engine profiles.

Nothing is imported here, so that a process pays only for the room's files that it uses:
`catalog.models.model`, `catalog.gpus.gpu`, `catalog.engines.profile`, `catalog.footprint.Footprint`.
"""
