"""Articles, prepositions and other words that no evidence needs to repeat, of all languages
that are read.
"""

from __future__ import annotations

_TEXT = """
    a an the of in at on to for with and or my her his our der die das den dem ein eine einen im
    am zu und mein meine la le les el los las un une il lo gli i o os as um uma de del della di
    da du des y e et en au aux à
"""
SMALL_WORDS = frozenset(_TEXT.split())
