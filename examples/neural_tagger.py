"""Chunk text with a network: embeddings, an LSTM and a `ChainHead`, by three losses, beside linear models.

Words, their beginnings, endings and shapes, and parts of speech have embeddings; an LSTM in both directions, or two
convolutions, which see two words on either side, are above. The same network is trained with the CRF loss, the hinge
loss and the smooth hinge loss; the last layer of the last one is then certified, and trained to its optimum by a solver
of the library. `ChainCRF` and `ChainSVM` have window features.

Run with the folder of the data in MAXMARGIN_DATA, and the extra `torch` installed; it takes about six minutes:

    python examples/neural_tagger.py
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

import numpy as np
import torch
from torch import nn

from maxmargin import ChainCRF, ChainSVM
from maxmargin.datasets import load_conll2000
from maxmargin.metrics import entity_f1
from maxmargin.text import WindowFeatures
from maxmargin.torch import ChainHead, crf_loss, decode, hinge_loss, smooth_hinge_loss

LOSSES = {"log": crf_loss, "hinge": hinge_loss, "smooth_hinge": smooth_hinge_loss}
# The width of the embedding of each name of a token: word, endings, beginning, shape and part of speech.
WIDTHS = (64, 24, 24, 16, 8, 32)
DROPOUT = 0.4
SORTED_BATCHES = 16  # so many batches are made of sentences in the order of their lengths, to have less padding


def shape(word):
    """A word with letters and digits replaced by their kinds, repeated ones once."""
    kinds = ["A" if c.isupper() else "a" if c.islower() else "0" if c.isdigit() else c for c in word]
    return "".join(kind for k, kind in enumerate(kinds) if k == 0 or kind != kinds[k - 1])


def describe(sentence):
    """The names of each token."""
    return [(low, low[-2:], low[-3:], low[:3], shape(word), tag) for word, tag in sentence for low in [word.lower()]]


class Vocabulary:
    """Numbers of names that occur at least twice; 0 for padding, 1 for the others."""

    def __init__(self, sentences):
        columns = zip(*(token for sentence in sentences for token in describe(sentence)), strict=True)
        counts = [Counter(column) for column in columns]
        self.numbers = [
            {name: k for k, name in enumerate((n for n, c in count.items() if c > 1), start=2)} for count in counts
        ]

    def encode(self, sentence):
        """(T, 6) numbers of the names of the tokens of a sentence."""
        rows = [
            [known.get(name, 1) for known, name in zip(self.numbers, token, strict=True)]
            for token in describe(sentence)
        ]
        return torch.tensor(rows)


class Convolutions(nn.Module):
    """Two convolutions over the tokens of padded sentences."""

    def __init__(self, n_inputs, n_hidden):
        super().__init__()
        self.first = nn.Conv1d(n_inputs, n_hidden, 3, padding=1)
        self.second = nn.Conv1d(n_hidden, n_hidden, 3, padding=1)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x, lengths):
        """(B, T, n_hidden) features."""
        x = self.dropout(torch.relu(self.first(x.transpose(1, 2))))
        return torch.relu(self.second(x)).transpose(1, 2)


class BothWays(nn.Module):
    """An LSTM over the tokens of padded sentences, in both directions."""

    def __init__(self, n_inputs, n_hidden):
        super().__init__()
        self.lstm = nn.LSTM(n_inputs, n_hidden // 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        """(B, T, n_hidden) features."""
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


ENCODERS = {"lstm": BothWays, "convolutions": Convolutions}


class Tagger(nn.Module):
    """Embeddings, an encoder of sentences, and the potentials of chains."""

    def __init__(self, vocabulary, n_labels, n_hidden=160, encoder="lstm"):
        super().__init__()
        sizes = [len(known) + 2 for known in vocabulary.numbers]
        self.embeddings = nn.ModuleList(nn.Embedding(size, width) for size, width in zip(sizes, WIDTHS, strict=True))
        self.encoder = ENCODERS[encoder](sum(WIDTHS), n_hidden)
        self.dropout = nn.Dropout(DROPOUT)
        self.head = ChainHead(n_hidden, n_labels)

    def hidden(self, names, lengths):
        """(B, T, H) features of the tokens of padded sentences."""
        columns = [embedding(names[..., k]) for k, embedding in enumerate(self.embeddings)]
        return self.dropout(self.encoder(self.dropout(torch.cat(columns, dim=2)), lengths))

    def forward(self, names, lengths):
        """The potentials of padded sentences."""
        return self.head(self.hidden(names, lengths), lengths)


def batches(sequences, size, order):
    """Padded sequences, and which they are, `size` at a time."""
    for at in range(0, len(order), size):
        which = order[at : at + size]
        yield which, nn.utils.rnn.pad_sequence([sequences[i] for i in which], batch_first=True)


def shuffled(lengths, size, rng):
    """An order of sequences in which those of a batch are of like lengths, and batches are not."""
    order = rng.permutation(len(lengths))
    rows = [
        sorted(order[at : at + size * SORTED_BATCHES].tolist(), key=lengths.__getitem__)
        for at in range(0, len(order), size * SORTED_BATCHES)
    ]
    pieces = [row[at : at + size] for row in rows for at in range(0, len(row), size)]
    return [i for k in rng.permutation(len(pieces)) for i in pieces[k]]


def train(tagger, loss, X, y, epochs, batch_size=32):
    optimizer, rng = torch.optim.Adam(tagger.parameters(), lr=3e-3), np.random.default_rng(0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    lengths = [len(x) for x in X]
    tagger.train()
    for _ in range(epochs):
        for which, names in batches(X, batch_size, shuffled(lengths, batch_size, rng)):
            tags = nn.utils.rnn.pad_sequence([y[i] for i in which], batch_first=True)
            optimizer.zero_grad()
            loss(tagger(names, [lengths[i] for i in which]), tags).backward()
            optimizer.step()
        schedule.step()
    tagger.eval()


def tag(tagger, X, labels):
    """The tags of sentences."""
    order, found = sorted(range(len(X)), key=lambda i: len(X[i])), [[]] * len(X)
    with torch.no_grad():
        for which, names in batches(X, 128, order):
            outputs = decode(tagger(names, [len(X[i]) for i in which]))
            for i, row in zip(which, outputs, strict=True):
                found[i] = [labels[k] for k in row[: len(X[i])].tolist()]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=8936, help="training sentences")
    parser.add_argument("--epochs", type=int, default=7, help="passes over them")
    parser.add_argument("--encoder", choices=ENCODERS, default="lstm", help="what is above the embeddings")
    parser.add_argument("--losses", nargs="+", choices=LOSSES, default=[*LOSSES], help="losses of the network")
    parser.add_argument("--no-linear", action="store_true", help="leave the linear models out")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = load_conll2000()
    X_train, y_train = data.X_train[: args.sentences], data.y_train[: args.sentences]
    labels = sorted({tag for tags in y_train for tag in tags})
    number = {label: k for k, label in enumerate(labels)}
    vocabulary = Vocabulary(X_train)
    X, X_test = ([vocabulary.encode(sentence) for sentence in part] for part in (X_train, data.X_test))
    y = [torch.tensor([number[tag] for tag in tags]) for tags in y_train]
    print(f"{len(X)} training sentences, {len(labels)} tags")

    def report(name, predicted, began):
        seconds, f1 = time.process_time() - began, 100 * entity_f1(data.y_test, predicted)
        print(f"{name:28} chunk F1 {f1:.2f}   {seconds:.0f} s CPU", flush=True)

    for name in args.losses:
        torch.manual_seed(0)
        tagger, began = Tagger(vocabulary, len(labels), encoder=args.encoder), time.process_time()
        train(tagger, LOSSES[name], X, y, args.epochs)
        report(f"network, {name} loss", tag(tagger, X_test, labels), began)
    some, settings = range(min(1000, len(X))), {"C": 1.0, "loss": args.losses[-1]}
    with torch.no_grad():
        hidden = torch.cat([tagger.hidden(X[i][None], [len(X[i])])[0] for i in some])
    tags, lengths = torch.cat([y[i] for i in some]), [len(X[i]) for i in some]
    before = tagger.head.certificate(tags, hidden, lengths, **settings).primal
    after = tagger.head.solve(tags, hidden, lengths, **settings, tol=1e-3).certificate
    print(f"its last layer on {len(some)} sentences: {before:.3f}, solved {after.primal:.3f}, bound {after.dual:.3f}")
    if not args.no_linear:
        for model in (ChainCRF(), ChainSVM()):
            features, began = WindowFeatures(), time.process_time()
            model.fit(features.fit_transform(X_train), y_train)
            report(type(model).__name__, model.predict(features.transform(data.X_test)), began)


if __name__ == "__main__":
    main()
