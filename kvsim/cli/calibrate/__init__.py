"""`kvsim calibrate`: parameters of the cost model from measurements; one file an action."""
