"""The page that says where kvsim holds: ranges, errors and sources, all read from its data files."""
