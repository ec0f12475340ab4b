"""What a text says, read off the layers of the embedding model: sentences, words with tag and
lemma, the tree of each sentence, names, and what kind of utterance it is.

    Reading ⊃ Sentence ⊃ Token, Span   reading.py: what is read of a text
    read_sentences, unread             segmentation.py: sentences and words, by their spelling alone
    readable                           scripts.py: whether a text is of a language that is read
    windows.py                         a text in parts that the model reads whole
    states.py, spelling.py             what is known of a word: its layers, and its letters
    heads.py, kernels.py               what the learned heads make of it, in numbers (parse.py)
    assembly.py, lemmas.py             those numbers as a reading
    names                              names.py: of other languages names alone, by others' taggers

English alone is read. Of other languages, and of texts without words, a reading has sentences
without tokens. Texts are read by `Models.read_language`.
"""

from runtime.inference.language.names import names
from runtime.inference.language.reading import ROOT, Reading, Sentence, Span, Token
from runtime.inference.language.scripts import readable
from runtime.inference.language.segmentation import SENTENCE_TOKENS_MAX, read_sentences, unread

__all__ = [
    "ROOT",
    "SENTENCE_TOKENS_MAX",
    "Reading",
    "Sentence",
    "Span",
    "Token",
    "names",
    "read_sentences",
    "readable",
    "unread",
]
