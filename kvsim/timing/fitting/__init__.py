"""From measured rows to parameters: reading tables, robust fits, calibrations as data."""
