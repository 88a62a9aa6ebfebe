"""Find the white blood cell in an image as *A smoother way* does: proposals, features of a network, candidates.

Selective search at two scales proposes boxes, of which those of likely sizes are kept; the one nearest to the true box
stands for it in training. A small convolutional network is trained to tell how well boxes overlap the cell; its last
maps, 3 x 3 x C, are the features of a box and a margin around it. First a linear score by `CandidateSVM`, with C chosen
on the development images, and its problem by all solvers. The boxes that the last of them chooses are then moved by
box regression. Last the non-linear score of the paper, a 1 x 1 convolution, ELU and a linear layer, by prox-linear
steps and by stochastic subgradients, with as many calls of the oracle, those to find the objective included.

Run with the folder of the data in MAXMARGIN_DATA, and the extras `vision` and `torch` installed; it takes about eight
minutes, less where features are kept in a folder:

    python examples/localization.py --cache /tmp/blood_cells
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import nn

from maxmargin import BCFW, SGD, SVRG, CandidateSVM, Casimir, OneSlack, Perceptron
from maxmargin.datasets import load_blood_cells
from maxmargin.encode.candidate_encoder import CandidateEncoder
from maxmargin.metrics import average_precision, corloc, iou, mean_iou
from maxmargin.torch import CandidateHead, ProxLinear, StochasticSubgradient
from maxmargin.vision import BoxRegressor, cnn_features, nearest_candidates, selective_search

SOLVERS = {
    "SGD": SGD(),
    "SVRG": SVRG(),
    "Casimir, constant": Casimir(schedule="constant"),
    "Casimir, adaptive": Casimir(),
    "Casimir, previous iterate": Casimir(warm_start="previous"),
    "Casimir, extrapolation": Casimir(warm_start="extrapolation"),
    "BCFW": BCFW(),
    "perceptron": Perceptron(),
    "1-slack": OneSlack(),
}
PROX_LINEAR = {
    "prox-linear, Casimir": ProxLinear(first_eta=30.0, inner_passes=3, max_steps=100),
    "prox-linear, BCFW": ProxLinear(first_eta=30.0, inner_passes=3, max_steps=100, solver=BCFW()),
}
STEPS = {"constant": (0.03, 0.1, 0.3), "sqrt": (0.3, 1.0, 3.0), "inverse": (3.0, 10.0, 30.0)}
CROP, MARGIN = 32, 0.15  # the side of a crop in pixels; what is seen around a box, as a share of its sides
SCALES = 3, 4  # how much smaller images are for selective search
SMALLEST_SIDE = 30  # of a box that is moved at random
ROUNDS = 3  # of box regression


def propose(image, sizes):
    """Proposals in pixels: those whose sides are within 0.8 the smallest and 1.1 times the largest true ones."""
    height, width = image.shape[:2]
    found = []
    for scale in SCALES:
        small = cv2.resize(image, (width // scale, height // scale), interpolation=cv2.INTER_AREA)
        found.append(scale * selective_search(small, max_boxes=5000))
    boxes = np.unique(np.concatenate(found), axis=0)
    sides = boxes[:, 2:] - boxes[:, :2]
    fits = ((sides >= 0.8 * sizes.min(axis=0)) & (sides <= 1.1 * sizes.max(axis=0))).all(axis=1)
    return boxes[fits] if fits.any() else boxes


def moved(true, shape, count, rng):
    """Boxes around the true one, each side moved at random."""
    sides, spread = np.tile(true[2:] - true[:2], 2), rng.choice([0.05, 0.1, 0.2], size=(count, 1))
    boxes = np.rint(true + spread * sides * rng.normal(size=(count, 4))).astype(int)
    boxes = np.clip(boxes, 0, [*shape[:2], *shape[:2]])
    return boxes[(boxes[:, 2:] - boxes[:, :2] >= SMALLEST_SIDE).all(axis=1)]


def describe(images, boxes, network, cache=None, size=CROP):
    """The maps of boxes and the margins around them."""
    wider = []
    for image, some in zip(images, boxes, strict=True):
        margin = np.rint(MARGIN * (some[:, 2:] - some[:, :2])).astype(int)
        corners = np.maximum(some[:, :2] - margin, 0), np.minimum(some[:, 2:] + margin, image.shape[:2])
        wider.append(np.concatenate(corners, axis=1))
    return cnn_features(images, wider, network, size=size, cache=cache)


def refine(images, boxes, network, regressor):
    """One box of each image, moved by a regressor, again and again."""
    for k in range(1, ROUNDS + 1):
        rows = [box[np.newaxis] for box in boxes]
        moved = regressor.predict(describe(images, rows, network), rows, [image.shape for image in images])
        boxes = [row[0] for row in moved]
        yield k, boxes


class Backbone(nn.Sequential):
    """Crops to maps of 3 x 3 x C."""

    def __init__(self, n_maps):
        super().__init__(
            nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.Conv2d(32, n_maps, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        )  # fmt: skip


def pretrain(backbone, images, boxes, truths, epochs, rng, size=CROP, counts=(40, 60), rate=2e-3):
    """Train the network to tell the IoU of boxes: so many proposals of an image, and boxes around the true one."""
    n_proposals, n_around = counts
    some = [
        np.concatenate([own[rng.permutation(len(own))[:n_proposals]], moved(true, image.shape, n_around, rng)])
        for image, own, true in zip(images, boxes, truths, strict=True)
    ]
    X = torch.as_tensor(np.concatenate(describe(images, some, nn.Identity(), size=size)))
    y = torch.as_tensor(np.concatenate([iou(own, true) for own, true in zip(some, truths, strict=True)])).to(X)
    network = nn.Sequential(backbone, nn.Flatten(), nn.Linear(backbone(X[:1]).numel(), 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for which in torch.randperm(len(X)).split(128):
            crops = X[which].flip([axis for axis in (2, 3) if rng.random() < 0.5])
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(network(crops)[:, 0], y[which]).backward()
            optimizer.step()
        schedule.step()
    backbone.requires_grad_(False)


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
    parser.add_argument("--cache", type=Path, default=None, help="folder for features")
    parser.add_argument("--images", type=int, default=10**6, help="of each part, at most")
    parser.add_argument("--maps", type=int, default=32, help="of the network")
    parser.add_argument("--epochs", type=int, default=12, help="of its training")
    parser.add_argument("--passes", type=int, default=50, help="over the images, of each solver")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cv2.setNumThreads(1)
    data, rng, began = load_blood_cells(), np.random.default_rng(0), time.process_time()
    images = [part[: args.images] for part in (data.X_train, data.X_dev, data.X_test)]
    truths = [[np.array(box) for box in part[: args.images]] for part in (data.y_train, data.y_dev, data.y_test)]
    sizes = np.array([box[2:] - box[:2] for box in truths[0]])
    boxes = [[propose(image, sizes) for image in part] for part in images]
    print(f"{', '.join(str(len(part)) for part in images)} training, development and test images")
    print(f"{np.mean([len(own) for own in boxes[0]]):.0f} proposals each: {time.process_time() - began:.0f} s CPU")
    backbone, began = Backbone(args.maps), time.process_time()
    pretrain(backbone, images[0], boxes[0], truths[0], args.epochs, rng)
    maps = [describe(some, own, backbone, args.cache) for some, own in zip(images, boxes, strict=True)]
    flat = [[own.reshape(len(own), -1) for own in part] for part in maps]
    rows = np.concatenate(flat[0])
    centre = rows.mean(axis=0)
    scale = 1 / np.sqrt(np.mean(np.square(rows - centre).sum(axis=1)))
    train, dev, test = ([scale * (rows - centre) for rows in part] for part in flat)
    print(f"network and features: {time.process_time() - began:.0f} s CPU\n")
    lists = [nearest_candidates(x, own, true) for x, own, true in zip(train, boxes[0], truths[0], strict=True)]
    best, costs = [one.best for one in lists], [one.costs for one in lists]

    def chosen(scores, part):
        return [own[np.argmax(s)] for own, s in zip(boxes[part], scores, strict=True)]

    def report(name, numbers, scores, boxes_found=None):
        boxes_found = chosen(scores, 2) if boxes_found is None else boxes_found
        ap = average_precision(
            [true[None] for true in truths[2]], [b[None] for b in boxes_found], [[s.max()] for s in scores]
        )
        quality = f"{corloc(truths[2], boxes_found):7.3f} {mean_iou(truths[2], boxes_found):9.3f} {ap:6.3f}"
        print(f"{name:26} {numbers} {quality}", flush=True)

    on_dev = {}
    for C in (1.0, 10.0, 100.0):
        model = CandidateSVM(C=C, random_state=0).fit(train, best, costs=costs)
        on_dev[C] = mean_iou(truths[1], chosen(model.decision_function(dev), 1))
        print(f"C = {C:g}: mean IoU on the development images {on_dev[C]:.3f}")
    C = max(on_dev, key=on_dev.get)

    blank = " " * 36
    header = f"{'calls':>7} {'objective':>10} {'gap':>9} {'CPU s':>7} {'CorLoc':>7} {'mean IoU':>9} {'AP':>6}"
    print(f"\n{f'linear score, C = {C:g}':26} {header}")
    report("(nearest proposals)", blank, [iou(own, true) for own, true in zip(boxes[2], truths[2], strict=True)])
    problem = CandidateEncoder.learn(train, best, dtype="float64", costs=costs).problem
    for name, solver in SOLVERS.items():
        solver.solve(problem, C, max_passes=1, random_state=0, loss="hinge")  # to compile it
        began = time.process_time()
        result = solver.solve(problem, C, max_passes=args.passes, tol=1e-3, random_state=0, loss="hinge")
        seconds, certificate = time.process_time() - began, result.certificate
        calls = int(result.trace.oracle_calls[-1])
        numbers = f"{calls:7d} {certificate.primal:10.5f} {certificate.gap:9.5f} {seconds:7.2f}"
        scores = [x @ result.w for x in test]
        report(name, numbers, scores)
    around = [moved(true, image.shape, 60, rng) for image, true in zip(images[0], truths[0], strict=True)]
    regressor = BoxRegressor().fit(describe(images[0], around, backbone, args.cache), around, truths[0])
    for k, found in refine(images[2], chosen(scores, 2), backbone, regressor):
        report(f"{name}, regression {k}", blank, scores, found)

    shape = 1, -1, args.maps, 9
    inputs, held = ([torch.as_tensor(x.reshape(shape)) for x in part] for part in (train, test))
    targets, budget = [torch.tensor([k]) for k in best], 2 * args.passes * len(train)
    ways = PROX_LINEAR | {
        f"SGD, {schedule}, {step:g}": StochasticSubgradient(schedule, step=step, max_passes=args.passes)
        for schedule, steps in STEPS.items()
        for step in steps
    }
    for strength, (name, way) in itertools.product((C, C / 10), ways.items()):
        if name == next(iter(ways)):
            print(f"\n{f'non-linear score, C = {strength:g}':26} {header}")
        torch.manual_seed(0)
        network, began, options = Score(args.maps), time.process_time(), {}
        if isinstance(way, ProxLinear):
            options = {"is_rowwise": True, "callback": lambda trace: trace.oracle_calls[-1] >= budget}
        trace = way.solve(network, inputs, targets, strength, cost=costs, random_state=0, **options).trace
        seconds = time.process_time() - began
        with torch.no_grad():
            scores = [network(x).scores[0].numpy() for x in held]
        numbers = f"{trace.oracle_calls[-1]:7d} {np.min(trace.primal):10.5f} {'':9} {seconds:7.2f}"
        report(name, numbers, scores)


if __name__ == "__main__":
    main()
