"""How many tokens a text is: for the budgets of prompts, before it is sent.

Each language model has a tokenizer of its own, and few endpoints tell which. The WordPiece
tokenizer that comes with the embedded model is counted with instead: its vocabulary is small
(30,522), so that it finds at least as many pieces in ordinary text as the models' own do. Text it
does not know would look short, so no text counts less than a token per five bytes. Where the
package is missing, four bytes count as a token.
"""

from __future__ import annotations

from functools import cache

from tokenizers import Tokenizer

from runtime.inference.minilm.weights import ModelUnusable, packaged_files

BYTES_PER_TOKEN_AT_LEAST = 5
BYTES_PER_TOKEN_GUESSED = 4


def count_tokens(text: str) -> int:
    """0 for "", else at least 1."""
    encoded = text.encode("utf-8", "replace")
    size = len(encoded)
    tokenizer = shipped_tokenizer()
    if tokenizer is None:
        return -(-size // BYTES_PER_TOKEN_GUESSED)
    return max(
        len(tokenizer.encode(encoded.decode(), add_special_tokens=False).ids),
        -(-size // BYTES_PER_TOKEN_AT_LEAST),
    )


@cache
def shipped_tokenizer() -> Tokenizer | None:
    try:
        path = packaged_files() / "tokenizer.json"
    except ModelUnusable:
        return None
    if not path.is_file():
        return None
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
