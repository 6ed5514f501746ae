"""Who runs in the next step: batching, admission, preemption, order."""
