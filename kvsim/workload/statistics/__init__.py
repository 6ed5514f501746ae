"""What a trace is like: lengths, arrivals, sessions, and what its prompts share; read in one pass, held as numbers."""
