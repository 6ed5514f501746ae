"""What a scenario asks, the answer with its numbers, and the page that shows both."""
