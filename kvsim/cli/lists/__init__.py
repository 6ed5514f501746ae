"""The verbs that list what there is: models, GPUs, engines, presets, the keys of a scenario."""
