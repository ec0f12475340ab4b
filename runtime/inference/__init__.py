"""Models the service calls, behind small protocols: the embedder, which turns text into a vector,
the language model, a reranker.

    Embedder
    ├── MiniLmEmbedder   runtime/inference/minilm/embedder.py: the embedded model
    ├── MultilingualEmbedder  runtime/inference/multilingual.py: the same, and beside it one that
    │                    reads other languages
    ├── CheckpointEmbedder  runtime/inference/checkpoint: a model of the operator's own; both on one
    │                    worker, runtime/inference/local_embedder.py: a thread of this process, or
    │                    one of a process that serves all shards; on a GPU by torch_encoder.py
    └── OpenAiEmbedder   runtime/inference/openai_embedder.py; what both share is in
                         runtime/inference/embedding.py
    LanguageModel        runtime/inference/language_model.py
    Reranker             runtime/inference/reranker.py
    language             runtime/inference/language: what a text says, read off the embedding model
    Transcriber, Recogniser  runtime/inference/transcription_and_ocr.py
    Models               runtime/inference/models.py: all that a process was given

What is asked of other people's servers goes through runtime/inference/remote_endpoint.py; chat
alone, which streams, has the `openai` client.

Owns waiting: how many texts may queue, how they share a run of the model, how long a caller waits,
which vectors are remembered, which failures are tried again. Does not know what a text is for.

What holds for each embedder:
- Rows are unit vectors in the order of the texts, and a text's vector does not depend on the texts
  beside it.
- `space` names the model and its width. Vectors of different spaces must never be compared.
- Whatever goes wrong below is InferenceUnavailable: down, late, overloaded, or an answer that makes
  no sense. Callers go on without vectors.
- An embedder belongs to the event loop that uses it; close it in that loop.

A text longer than the model reads (at most 256 tokens on this machine; 8,192 characters for any) is
embedded by its beginning alone.
"""

from runtime.inference import language
from runtime.inference.embedding import (
    Embedding,
    InferenceUnavailable,
    on_busy,
    remembered_for,
)
from runtime.inference.gpu import gpu_name
from runtime.inference.language_model import CompletionFailed, Events, LanguageModel, Usage
from runtime.inference.local_embedder import Caller, Worker
from runtime.inference.minilm.embedder import MiniLmEmbedder
from runtime.inference.minilm.weights import (
    WEIGHTS_SHA256,
    ModelUnusable,
    packaged_files,
    sha256_of,
)
from runtime.inference.models import (
    Embedder,
    Models,
    SharedWorkers,
    checkpoint_of,
    learn_word_directions,
    load_language_model,
    load_models,
    load_worker,
)
from runtime.inference.multilingual import check_sentence_encoder
from runtime.inference.reranker import RerankingFailed, load_reranker
from runtime.inference.token_count import count_tokens
from runtime.inference.transcription_and_ocr import (
    ExtractionRefused,
    ExtractionUnavailable,
    load_recogniser,
    load_transcriber,
)

__all__ = [
    "WEIGHTS_SHA256",
    "Caller",
    "CompletionFailed",
    "Embedder",
    "Embedding",
    "Events",
    "ExtractionRefused",
    "ExtractionUnavailable",
    "InferenceUnavailable",
    "LanguageModel",
    "MiniLmEmbedder",
    "ModelUnusable",
    "Models",
    "RerankingFailed",
    "SharedWorkers",
    "Usage",
    "Worker",
    "check_sentence_encoder",
    "checkpoint_of",
    "count_tokens",
    "gpu_name",
    "language",
    "learn_word_directions",
    "load_language_model",
    "load_models",
    "load_recogniser",
    "load_reranker",
    "load_transcriber",
    "load_worker",
    "on_busy",
    "packaged_files",
    "remembered_for",
    "sha256_of",
]
