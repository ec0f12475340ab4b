"""One spelling for nouns that British and American English write differently."""

from __future__ import annotations

_BRITISH = {
    "color": "colour", "flavor": "flavour", "odor": "odour", "harbor": "harbour",
    "neighbor": "neighbour", "neighborhood": "neighbourhood", "humor": "humour",
    "theater": "theatre", "center": "centre", "program": "programme", "donut": "doughnut",
    "yogurt": "yoghurt", "armor": "armour", "tire": "tyre", "jewelry": "jewellery",
}  # fmt: skip


_AMERICAN = {british: american for american, british in _BRITISH.items()}


def in_other_spelling(words: str) -> str:
    """The words in small letters, as American English writes them."""
    return " ".join(_AMERICAN.get(word, word) for word in words.casefold().split())


def in_one_spelling(words: str) -> str:
    """The words in small letters, as British English writes them."""
    return " ".join(_BRITISH.get(word, word) for word in words.casefold().split())
