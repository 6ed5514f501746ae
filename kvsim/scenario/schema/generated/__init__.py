"""The keys of generated traffic: how long requests are, when they come, what they share, and in which sessions."""
