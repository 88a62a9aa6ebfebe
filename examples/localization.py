"""Find the white blood cell in an image as *A smoother way* does: proposals, features of a network, `CandidateSVM`.

Selective search proposes boxes, of which those of likely sizes are kept; the one nearest to the true box stands for it
in training. A small convolutional network is trained to tell proposals that overlap a cell from others; its last maps,
3 x 3 x C, are the features of a box. First a linear score, by all solvers: objective, lower bound, and quality on test
images. Then the non-linear score of the paper, a 1 x 1 convolution, ELU and a linear layer, by prox-linear steps and by
stochastic subgradients.

Run with the folder of the data in MAXMARGIN_DATA, and the extras `vision` and `torch` installed; features and proposals
are kept in a folder:

    python examples/localization.py --cache /tmp/blood_cells
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn

from maxmargin import BCFW, SGD, SVRG, Casimir, OneSlack, Perceptron
from maxmargin.datasets import load_blood_cells
from maxmargin.encode.candidates import CandidateEncoder
from maxmargin.metrics import average_precision, corloc, iou, mean_iou
from maxmargin.torch import CandidateHead, ProxLinear, StochasticSubgradient
from maxmargin.vision import cnn_features, nearest_candidates, selective_search

SOLVERS = {
    "SGD": SGD(),
    "SVRG": SVRG(),
    "Casimir, constant": Casimir(schedule="constant"),
    "Casimir, adaptive": Casimir(),
    "Casimir, previous iterate": Casimir(warm_start="previous"),
    "Casimir, extrapolation": Casimir(warm_start="extrapolation"),
    "BCFW": BCFW(),
    "1-slack": OneSlack(),
    "perceptron": Perceptron(),
}
CROP, SCALE = 32, 4  # the side of a crop; how much smaller images are for selective search


def propose(image, sizes, most):
    """Proposals in pixels: those whose sides are within half the smallest and 1.5 times the largest true ones."""
    height, width = image.shape[:2]
    small = cv2.resize(image, (width // SCALE, height // SCALE), interpolation=cv2.INTER_AREA)
    boxes = SCALE * selective_search(small, max_boxes=5000)
    sides = boxes[:, 2:] - boxes[:, :2]
    fits = ((sides >= sizes.min(axis=0) / 2) & (sides <= 1.5 * sizes.max(axis=0))).all(axis=1)
    return boxes[fits][:most] if fits.any() else boxes[:most]


class Backbone(nn.Sequential):
    """Crops to maps of 3 x 3 x C."""

    def __init__(self, n_maps):
        super().__init__(
            nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
            nn.Conv2d(24, n_maps, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        )  # fmt: skip


def pretrain(backbone, images, boxes, truths, epochs, rng):
    """Train the network to tell proposals of an IoU above 0.6 from those below 0.4, as many of each."""
    crops, labels = [], []
    raw = nn.Identity()
    for image, some, true in zip(images, boxes, truths, strict=True):
        overlaps = iou(some, true)
        good, bad = np.flatnonzero(overlaps > 0.6), np.flatnonzero(overlaps < 0.4)
        count = min(len(good), len(bad), 8)
        if count:
            which = np.concatenate([rng.choice(good, count, False), rng.choice(bad, count, False)])
            crops.append(cnn_features([image], [some[which]], raw, size=CROP)[0])
            labels += [1.0] * count + [0.0] * count
    X, y = torch.as_tensor(np.concatenate(crops)), torch.tensor(labels)
    network = nn.Sequential(backbone, nn.Flatten(), nn.Linear(backbone(X[:1]).numel(), 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    for _ in range(epochs):
        for which in torch.randperm(len(X)).split(64):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(network(X[which])[:, 0], y[which])
            loss.backward()
            optimizer.step()
    backbone.requires_grad_(False)
    print(f"network: {len(X)} crops, loss {loss.item():.3f}")


class Score(nn.Module):
    """The non-linear score of the paper: 1 x 1 convolution to a few maps, ELU, and a linear layer."""

    def __init__(self, n_maps, n_inner=8):
        super().__init__()
        self.maps, self.head = nn.Linear(n_maps, n_inner, bias=False), CandidateHead(9 * n_inner)

    def forward(self, x):
        """The scores of boxes, from (1, K, C, 9) features."""
        return self.head(nn.functional.elu(self.maps(x.transpose(-1, -2))).flatten(-2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, default=None, help="folder for proposals and features")
    parser.add_argument("--images", type=int, default=10**6, help="of each part, at most")
    parser.add_argument("--proposals", type=int, default=150, help="of each image, at most")
    parser.add_argument("--maps", type=int, default=32, help="of the network")
    parser.add_argument("--epochs", type=int, default=8, help="of its training")
    parser.add_argument("--C", type=float, default=1.0, help="inverse strength of the regularization")
    parser.add_argument("--passes", type=int, default=30, help="over the images, of each solver")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cv2.setNumThreads(1)
    data, rng = load_blood_cells(), np.random.default_rng(0)
    began = time.process_time()
    y_train, y_test = ([np.array(box) for box in y[: args.images]] for y in (data.y_train, data.y_test))
    X_train, X_test = data.X_train[: args.images], data.X_test[: args.images]
    sizes = np.array([box[2:] - box[:2] for box in y_train])
    boxes = [[propose(x, sizes, args.proposals) for x in X] for X in (X_train, X_test)]
    best = [np.max(iou(some, true)) for some, true in zip(boxes[1], y_test, strict=True)]
    n_proposals = np.mean([len(some) for some in boxes[0]])
    print(f"{len(X_train)} training and {len(X_test)} test images, {n_proposals:.0f} proposals each")
    print(f"best proposals of test images: mean IoU {np.mean(best):.3f}; {time.process_time() - began:.0f} s CPU")
    backbone = Backbone(args.maps)
    pretrain(backbone, X_train, boxes[0], y_train, args.epochs, rng)
    train, test = (
        cnn_features(X, some, backbone, size=CROP, cache=args.cache)
        for X, some in zip((X_train, X_test), boxes, strict=True)
    )
    scale = 1 / np.sqrt(np.mean([np.square(x).sum(axis=(1, 2, 3)).mean() for x in train]))
    lists = [nearest_candidates(scale * x, some, true) for x, some, true in zip(train, boxes[0], y_train, strict=True)]
    truths, costs = [c.best for c in lists], [c.costs for c in lists]
    print(f"features: {time.process_time() - began:.0f} s CPU\n")

    def judge(scores):
        found = [some[np.argmax(s)] for some, s in zip(boxes[1], scores, strict=True)]
        confidence = [[s.max()] for s in scores]
        ap = average_precision([t[None] for t in y_test], [f[None] for f in found], confidence)
        return f"CorLoc {corloc(y_test, found):.3f}   mean IoU {mean_iou(y_test, found):.3f}   AP {ap:.3f}"

    flat = [scale * x.reshape(len(x), -1) for x in test]
    _, problem = CandidateEncoder.learn([c.features for c in lists], truths, dtype="float64", costs=costs)
    print(f"{'linear score':28} {'calls':>7} {'objective':>10} {'bound':>10}")
    for name, solver in SOLVERS.items():
        result = solver.solve(problem, args.C, max_passes=args.passes, tol=1e-4, random_state=0, loss="hinge")
        calls = int(result.trace.oracle_calls[-1])
        numbers = f"{name:28} {calls:7d} {result.certificate.primal:10.5f} {result.certificate.dual:10.5f}"
        print(numbers, " ", judge([x @ result.w for x in flat]), flush=True)

    inputs = [torch.as_tensor(scale * x.reshape(1, len(x), args.maps, 9)) for x in train]
    held = [torch.as_tensor(scale * x.reshape(1, len(x), args.maps, 9)) for x in test]
    targets = [torch.tensor([k]) for k in truths]
    ways = {"prox-linear": ProxLinear(max_steps=max(1, args.passes // 10))}
    for schedule in ("constant", "sqrt", "inverse"):
        for step in (0.03, 0.3, 3.0):
            ways[f"SGD, {schedule}, {step:g}"] = StochasticSubgradient(schedule, step=step, max_passes=args.passes)
    print(f"\n{'non-linear score':28} {'calls':>7} {'objective':>10}")
    for name, way in ways.items():
        torch.manual_seed(0)
        network = Score(args.maps)
        options = {"is_rowwise": True} if isinstance(way, ProxLinear) else {}
        trace = way.solve(network, inputs, targets, args.C, cost=costs, random_state=0, **options).trace
        with torch.no_grad():
            scores = [network(x).scores[0].numpy() for x in held]
        print(f"{name:28} {trace.oracle_calls[-1]:7d} {trace.primal[-1]:10.5f}  {judge(scores)}", flush=True)


if __name__ == "__main__":
    main()
