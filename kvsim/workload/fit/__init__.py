"""Laws fitted to a trace: quantile grids, mixtures and single families for lengths; processes for arrivals."""
