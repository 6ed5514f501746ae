"""The start-up planner: from a card to a pool."""
