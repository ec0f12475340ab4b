"""Checkpoints of each architecture against the same arithmetic in NumPy, and folders that are
refused.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from runtime.inference import ModelUnusable, checkpoint_of, packaged_files
from runtime.inference.checkpoint import (
    Checkpoint,
    CheckpointEmbedder,
    read_checkpoint,
    write_word_vectors,
)
from runtime.inference.checkpoint.model import CheckpointModel
from runtime.inference.minilm.onnx import GraphMiniLm
from runtime.inference.models import load_embedder
from runtime.settings import Settings
from tests.support.checkpoints import TEXTS, WIDTH, reference, save_checkpoint

NEAR = 0.99  # cosine of the int8 graph with the float arithmetic


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("kind", ["bert", "xlm-roberta", "mpnet"])
def test_each_architecture_gives_the_vectors_of_its_formulas(
    tmp_path: Path, kind: str, pooling: str
) -> None:
    weights = save_checkpoint(tmp_path / "model", kind, pooling=pooling)
    checkpoint = read_checkpoint(tmp_path / "model")
    model = CheckpointModel.load(checkpoint, tmp_path / "graphs")
    tokens = model.encode(TEXTS)
    assert max(len(text.ids) for text in tokens) == 40
    found = model.embed(tokens)
    assert found.shape == (len(TEXTS), WIDTH) and found.dtype == np.float32
    expected = np.array([reference(kind, weights, text.ids, pooling) for text in tokens])
    cosines = (found * expected).sum(1)
    assert cosines.min() > NEAR
    wrong = np.array(
        [reference(kind, weights, text.ids, "mean" if pooling == "cls" else "cls")
         for text in tokens]
    )  # fmt: skip
    assert (found * wrong).sum(1).max() < NEAR
    alone = np.concatenate([model.embed([text]) for text in tokens])
    np.testing.assert_allclose(alone, found, atol=1e-5)


def test_prompts_are_put_before_questions_and_passages(tmp_path: Path) -> None:
    prompts = {"query": "query: ", "passage": "passage: "}
    save_checkpoint(tmp_path / "plain")
    save_checkpoint(tmp_path / "prompted", prompts=prompts)
    plain, prompted = read_checkpoint(tmp_path / "plain"), read_checkpoint(tmp_path / "prompted")
    assert plain.space != prompted.space
    assert read_checkpoint(tmp_path / "prompted", query_prefix="", passage_prefix="") == replace(
        plain, folder=prompted.folder
    )

    async def vectors(checkpoint: Checkpoint, text: str, *, is_query: bool) -> np.ndarray:
        embedder = CheckpointEmbedder(checkpoint, tmp_path / "graphs", timeout_seconds=60)
        try:
            whole = (await embedder.embed([text], is_query=is_query))[0]
            found = (await embedder.embed_words([text], [[(0, 4)]], is_query=is_query))[0]
            np.testing.assert_allclose(found.vector, whole, atol=1e-5)
            return whole
        finally:
            await embedder.close()

    for is_query, prompt in ((True, "query: "), (False, "passage: ")):
        found = asyncio.run(vectors(prompted, "anna in graz", is_query=is_query))
        spelled = asyncio.run(vectors(plain, prompt + "anna in graz", is_query=is_query))
        np.testing.assert_allclose(found, spelled, atol=1e-5)


def test_a_word_has_its_vector_once_directions_are_learned(tmp_path: Path) -> None:
    """Two letters each, so that there are words enough to learn from."""
    words = [first + second + third for first in "abcdefghijk" for second in "aeiouäöü"
             for third in "lmnopqrstuvwxyz"]  # fmt: skip
    save_checkpoint(tmp_path / "model", "xlm-roberta", words=words, prompts={"passage": "oh: "})
    before = read_checkpoint(tmp_path / "model")
    text, spans = "bal dim kor bal", [(0, 3), (4, 7), (8, 11), (12, 15)]

    async def words_of(checkpoint: Checkpoint) -> np.ndarray | None:
        embedder = CheckpointEmbedder(checkpoint, tmp_path / "graphs", timeout_seconds=60)
        try:
            return (await embedder.embed_words([text], [spans]))[0].words
        finally:
            await embedder.close()

    assert asyncio.run(words_of(before)) is None
    written = write_word_vectors(before, tmp_path / "graphs", 1)
    assert written == tmp_path / "model/word_vectors.npz"
    after = read_checkpoint(tmp_path / "model")
    assert after.space != before.space
    found = asyncio.run(words_of(after))
    assert found is not None and found.shape == (4, 64) and found.dtype == np.int8
    cosines = found.astype(float) @ found.T.astype(float) / 127**2
    np.testing.assert_allclose(np.diag(cosines), 1, atol=0.05)
    assert cosines[0, 3] > max(cosines[0, 1], cosines[0, 2])


def test_what_it_reads_and_which_languages_it_was_taught(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "many", "xlm-roberta")
    save_checkpoint(tmp_path / "some", readme="---\nlanguage:\n- de\n- no\n---\n# A model\n")
    embedders = [
        CheckpointEmbedder(read_checkpoint(tmp_path / name), tmp_path / "graphs")
        for name in ("many", "some")
    ]
    many, some = embedders
    try:
        assert many.readable("вода 我 bread") == "вода bread"
        assert (many.readable("我"), many.knows("вода"), many.knows("我")) == ("", True, False)
        assert many.taught("german") and many.taught("russian")
        assert some.readable("вода bread") == "bread"
        assert some.taught("german") and some.taught("norwegian") and not some.taught("english")
    finally:
        for embedder in embedders:
            asyncio.run(embedder.close())


def test_a_vocabulary_alone_will_do(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "model")
    folder = tmp_path / "model"
    with_file = CheckpointModel.load(read_checkpoint(folder), tmp_path / "graphs")
    vocabulary = sorted(with_file.vocabulary, key=with_file.vocabulary.__getitem__)
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(vocabulary))
    without = CheckpointModel.load(read_checkpoint(folder), tmp_path / "graphs")
    assert without.encode(["The lease"])[0].ids == with_file.encode(["The lease"])[0].ids


def edited(name: str, **fields: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / name
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))

    return edit


def with_dense(folder: Path) -> None:
    path = folder / "modules.json"
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    path.write_text(json.dumps([*json.loads(path.read_text())[:2], dense]))


def cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1_000])


def of_another_type(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    save_file({name: each.astype(np.float64) for name, each in stored.items()},
              folder / "model.safetensors")  # fmt: skip


def without_a_number(folder: Path) -> None:
    stored = load_file(folder / "model.safetensors")
    stored["encoder.layer.1.output.dense.bias"][3] = np.nan
    save_file(stored, folder / "model.safetensors")


@pytest.mark.parametrize(
    ("break_it", "told"),
    [
        (edited("config.json", model_type="t5"), "architecture 't5' is not supported"),
        (edited("config.json", hidden_act="relu"), "activation 'relu' is not supported"),
        (edited("config.json", position_embedding_type="relative_key"), "only 'absolute'"),
        (edited("config.json", hidden_size=None), "None for hidden_size"),
        (edited("config.json", num_attention_heads=7), "no multiple of its 7 heads"),
        (edited("config.json", intermediate_size=96), "config.json says (96, 64)"),
        (edited("config.json", num_hidden_layers=3), "lacks encoder.layer.2.attention"),
        (edited("config.json", vocab_size=50), "tokens up to"),
        (edited("1_Pooling/config.json", pooling_mode_max_tokens=True), "pooling 'mean + max'"),
        (with_dense, "module Dense is not supported"),
        (cut, "model.safetensors cannot be read"),
        (of_another_type, "of type F64; save it in float32"),
        (without_a_number, "holds what is no number"),
        (lambda folder: (folder / "model.safetensors").unlink(), "safe_serialization=True"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "with its fast tokenizer"),
        (lambda folder: (folder / "tokenizer.json").write_text("{"), "tokenizer.json cannot be"),
        (lambda folder: (folder / "modules.json").write_text("{"), "modules.json makes no sense"),
        (lambda folder: (folder / "word_vectors.npz").write_text("?"), "word_vectors.npz cannot"),
    ],
)
def test_what_cannot_be_run_as_its_makers_ran_it_is_refused_with_a_sentence(
    tmp_path: Path, break_it: Callable[[Path], None], told: str
) -> None:
    folder = tmp_path / "model"
    save_checkpoint(folder)
    break_it(folder)
    settings = Settings.load({"embedder": {"model_path": str(folder)}})
    with pytest.raises(ModelUnusable) as refused:
        load_embedder(settings.embedder, tmp_path)
    assert told in str(refused.value) and str(folder) in str(refused.value)


def test_a_copy_of_the_embedded_model_stays_the_embedded_model(tmp_path: Path) -> None:
    settings = Settings.load({"embedder": {"model_path": str(packaged_files())}})
    assert checkpoint_of(settings.embedder) is None


def test_the_embedded_models_own_checkpoint_has_its_vectors(tmp_path: Path) -> None:
    model = CheckpointModel.load(read_checkpoint(packaged_files()), tmp_path)
    embedded = GraphMiniLm.load(tmp_path, packaged_files(), 1)
    tokens = model.encode(["The lease ends in May.", "Anna"])
    found = embedded.run([text.ids for text in tokens])[0]
    np.testing.assert_array_equal(model.embed(tokens), found)
