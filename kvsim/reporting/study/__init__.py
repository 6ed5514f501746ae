"""A study for people and programs: its table, its JSON form, its figure, and what it found in words."""
