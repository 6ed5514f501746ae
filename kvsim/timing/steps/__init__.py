"""From kernels to a step: shapes of a model's kernels on one GPU, and the seconds of each kind."""
