"""Any sentence-transformers checkpoint of the BERT family, from a folder on this machine: text in,
unit vector out, without torch.

    description.py   what the folder says of its model, and whether it can be run
    model.py         its tokenizer, and its graph on onnxruntime (runtime/inference/bert_graph.py)
    embedder.py      what it knows of words, languages and scripts

A space is named after what makes its vectors: weights, tokenizer, pooling, prefixes and length.
So a folder may be renamed or copied to another machine, and another model, or the same one asked
in another way, never lands in the same space.

Vectors of words belong to the model's last layer turned into the directions in which its words
differ (runtime/inference/minilm/word_vectors.py), and the same directions must be used on every
machine. A folder has them in word_vectors.npz, which `mneme models learn-words` writes; without it
memories have no vectors of words, and searches compare whole texts and words only.
"""

from runtime.inference.checkpoint.description import Checkpoint, read_checkpoint
from runtime.inference.checkpoint.embedder import CheckpointEmbedder
from runtime.inference.checkpoint.model import CheckpointModel, write_word_vectors

__all__ = [
    "Checkpoint",
    "CheckpointEmbedder",
    "CheckpointModel",
    "read_checkpoint",
    "write_word_vectors",
]
