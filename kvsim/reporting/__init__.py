"""Figures and tables made from Results, and from nothing else."""
