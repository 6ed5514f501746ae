"""Plans: goals, candidates, how large a rate each of them bears, what binds it, and which is best."""
