"""What a user wants to know of a plan: does it run, what would, for how many requests, and what presses."""
