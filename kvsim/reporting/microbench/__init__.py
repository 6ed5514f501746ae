"""What a fit to a GPU's own microbenchmarks looks like: measured points, fitted curves, residuals."""
