"""From measured points to a calibration: what may be trusted, which family each point is of, and the fits."""
