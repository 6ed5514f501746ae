"""Traces written in the forms that other tools replay."""
