"""What a report is about: runs, comparisons and other folders that kvsim wrote, read back."""

from kvsim.reporting.inputs.subject import Subject, is_folder, load_subject

__all__ = ["Subject", "is_folder", "load_subject"]
