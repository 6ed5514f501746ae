"""The planner against a table of real start-ups: given their overheads, and from the flags alone."""
