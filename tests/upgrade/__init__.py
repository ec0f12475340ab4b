"""Stores as earlier formats left them, and what could be seen of them then.

    stores/N.tar.gz   a data directory of format N, a few kilobytes, with seen.json beside it

`python -m tests.upgrade.keep` makes the one of the present format. It is made once, when a format is released, and kept for good.
"""
