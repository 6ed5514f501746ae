"""Which figures there are of runs, each with what it shows and when it can be drawn."""
