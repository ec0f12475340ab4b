"""The heads as PyTorch learns them; runtime/inference/language runs what is learned.

A word's states and spelling → 192 numbers → two convolutions over neighbours → everything else:
tags, lemma edits, names, kinds of things, arcs (biaffine: Dozat and Manning, 2017) and labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from runtime.inference.language.spelling import AFFIX_BUCKETS, FLAGS, WORD_BUCKETS

STATES = 768
WORD_WIDTH, AFFIX_WIDTH = 48, 24
HIDDEN, ARC, LABEL = 192, 96, 40
DISTANCES = 17  # to the head, from eight words and more before to eight and more after
WIDTH_IN = STATES + WORD_WIDTH + 2 * AFFIX_WIDTH + FLAGS


class Heads(nn.Module):
    """outputs: name -> how many classes, of what is said of each word by itself."""

    def __init__(self, outputs: dict[str, int], relations: int, kinds: int, dropout: float = 0.12):
        super().__init__()
        self.outputs, self.dropout, self.relations = outputs, dropout, relations
        self.words = nn.Embedding(WORD_BUCKETS, WORD_WIDTH)
        self.suffixes = nn.Embedding(AFFIX_BUCKETS, AFFIX_WIDTH)
        self.prefixes = nn.Embedding(AFFIX_BUCKETS, AFFIX_WIDTH)
        for table in (self.words, self.suffixes, self.prefixes):
            nn.init.normal_(table.weight, std=0.3)
        self.entry = nn.Linear(WIDTH_IN, HIDDEN)
        self.near = nn.ModuleList(nn.Linear(3 * HIDDEN, HIDDEN) for _ in range(2))
        self.said = nn.Linear(HIDDEN, sum(outputs.values()) + 2 * ARC + 2 * LABEL)
        self.arc_root, self.label_root = (
            nn.Parameter(torch.randn(width) * 0.3) for width in (ARC, LABEL)
        )
        self.arcs = nn.Parameter(torch.randn(ARC + 1, ARC) * 0.1)
        self.distances = nn.Parameter(torch.randn(DISTANCES, ARC) * 0.05)
        self.labels = nn.Parameter(torch.randn(LABEL + 1, relations, LABEL + 1) * 0.05)
        self.kinds = nn.Linear(2 * HIDDEN, kinds)

    def forward(
        self, states: Tensor, buckets: Tensor, marks: Tensor, mask: Tensor
    ) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
        """(n, w, …) -> what is said of each word; arcs (n, w, 1 + w) from each word to its head,
        the root first; (dependent, head) vectors of labels; kinds (n, …).
        """
        parts = [states, self.words(buckets[..., 0]), self.suffixes(buckets[..., 1])]
        parts += [self.prefixes(buckets[..., 2]), marks]
        x = self._dropped(torch.cat(parts, -1))
        here = mask.unsqueeze(-1)
        x = self._dropped(torch.relu(self.entry(x)) * here)
        for near in self.near:
            wide = torch.cat(
                [
                    functional.pad(x, (0, 0, 1, 0))[:, :-1],
                    x,
                    functional.pad(x, (0, 0, 0, 1))[:, 1:],
                ],
                -1,
            )
            x = self._dropped((x + torch.relu(near(wide))) * here)
        said = self.said(x)
        *plain, dependent, head, of_label, head_of_label = said.split(
            [*self.outputs.values(), ARC, ARC, LABEL, LABEL], -1
        )
        dependent, head = (self._dropped(torch.relu(each)) for each in (dependent, head))
        of_label, head_of_label = (
            self._dropped(torch.relu(each)) for each in (of_label, head_of_label)
        )
        head = torch.cat([self.arc_root.expand(len(x), 1, -1), head], 1)
        head_of_label = torch.cat([self.label_root.expand(len(x), 1, -1), head_of_label], 1)
        one = torch.ones_like(dependent[..., :1])
        arcs = torch.cat([dependent, one], -1) @ self.arcs @ head.transpose(1, 2)
        places = torch.arange(x.shape[1])
        far = (places[None, :] - places[:, None]).clamp(-(DISTANCES // 2), DISTANCES // 2)
        index = (far + DISTANCES // 2).expand(len(x), -1, -1)
        by_distance = (dependent @ self.distances.T).gather(2, index)
        arcs = arcs + functional.pad(by_distance, (1, 0))
        least = torch.finfo(arcs.dtype).min
        headable = torch.cat([torch.ones_like(mask[:, :1]), mask], 1)
        arcs = arcs.masked_fill(headable.unsqueeze(1) == 0, least)
        mean = (x * here).sum(1) / here.sum(1)
        top = x.masked_fill(here == 0, least).amax(1)
        kinds = self.kinds(torch.cat([mean, top], -1))
        return (
            dict(zip(self.outputs, plain, strict=True)),
            arcs,
            torch.stack([of_label, head_of_label[:, 1:]]),
            kinds,
        )

    def label_scores(self, dependents: Tensor, heads: Tensor) -> Tensor:
        """(m, LABEL) of dependents and of their heads -> (m, relations)."""
        one = torch.ones_like(dependents[:, :1])
        left, right = torch.cat([dependents, one], -1), torch.cat([heads, one], -1)
        turned = (left @ self.labels.flatten(1)).view(len(left), self.relations, -1)
        return (turned @ right.unsqueeze(-1)).squeeze(-1)

    def _dropped(self, x: Tensor) -> Tensor:
        """One mask for all words of a sentence."""
        if not self.training:
            return x
        kept = torch.full_like(x[:, :1], 1 - self.dropout)
        return x * torch.bernoulli(kept) / (1 - self.dropout)
