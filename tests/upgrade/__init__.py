"""Stores of earlier formats, kept as they were written, opened by this release. `make_store.py` says how each was made."""
