"""Figures of how long requests take and wait."""
