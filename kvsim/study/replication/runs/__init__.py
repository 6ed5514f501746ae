"""One run as a study sees it: a piece of work, what is observed of it, and what is kept."""
