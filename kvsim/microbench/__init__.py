"""Microbenchmarks on the user's own GPU: what they measured, the fit, how far it is off. Sees timing and catalog."""
