"""From YAML to plain values: one file with its lines, what it extends and what is set laid over it, presets written
out."""
