"""Arrivals whose rate changes with time: by chance (MMPP, on-off), by the hour (diurnal), or by plan."""
