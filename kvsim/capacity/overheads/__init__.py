"""What an engine takes beside weights and KV: rules of a release, the profiled step, what start-ups logged."""
