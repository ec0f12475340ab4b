"""Stores of earlier formats, kept as they were written, opened by this release, and what could be
seen of them then.

    format-1.tar.gz   a store of format 1, from before anything was sealed; `make_store.py` says how
                      it was made
    exported.tar.gz   a data directory with every kind of record that an account's export has, and
                      that export
    stores/N.tar.gz   a data directory of format N, a few kilobytes, with seen.json beside it

`python -m tests.upgrade.keep` makes the one of the present format. It is made once, when a format
is released, and kept for good.
"""
