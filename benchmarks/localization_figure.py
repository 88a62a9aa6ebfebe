"""Localization of blood cells, again and again: the experiment of *Local* and its Figure 5.

The white blood cells of BCCD and their subtypes, where the table of these is there. Boxes proposed by selective search,
cropped and rescaled to 64 x 64, are described by the 3 x 3 x 256 maps of the fourth convolution of AlexNet. No weights
trained on ImageNet are at hand: the network is trained from scratch, on the training images, to tell how well boxes
overlap the cell; with `--epochs 0` its filters stay random. Each kind of cell has its own linear score, with the loss
1 - IoU and K = 10.

A trial trains on 80 % of the training images, drawn at random, and is judged on the development and test images. C is
the best of a grid on the images that are left out of the first trial of all white blood cells. Shown are means and
standard deviations over the trials: the objective, in relation to the lowest one that any solver has found in that
trial, and CorLoc, the share of boxes that overlap the true one by more than half.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import PNG, in_fresh_process, parse_arguments, print_table, report_runs, save_with_legend
from benchmarks.smoother_figure import follow

CLASSES = ("WBC", "NEUTROPHIL", "EOSINOPHIL", "LYMPHOCYTE", "MONOCYTE")
SIZE = 64  # the side of a crop in pixels
STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # values of C
SHARE = 0.8  # of the training images, in a trial
COLUMNS = {"excess": "objective / lowest - 1", "relative": "certified relative gap", "score": "CorLoc"}
STYLES = {"constant": "--", "adaptive": "-"}

Part = dict[str, list[Any]]
Run = dict[str, Any]


def methods() -> dict[str, Any]:
    from maxmargin import BCFW, SGD, SVRG, Casimir, OneSlack, Perceptron

    casimir = {
        f"Casimir, {schedule}, {start}": Casimir(schedule=schedule, warm_start=start, max_k=10)
        for schedule in ("constant", "adaptive")
        for start in ("center", "previous", "extrapolation")
    }
    return {
        "perceptron": Perceptron(),
        "SGD": SGD(gap_every=2),
        "BCFW, average": BCFW(averaging=True, gap_every=2),
        "1-slack": OneSlack(),
        "SVRG": SVRG(max_k=10),
        **casimir,
    }


def describe_images(n_images: int | None, epochs: int, cache: Path | None) -> list[Part]:
    """The training, development and test images: their kinds, true boxes, proposals and features of these."""
    import cv2
    import torch
    from torch import nn

    from examples.localization import describe, pretrain, propose
    from maxmargin.datasets import load_blood_cells

    torch.set_num_threads(1)
    torch.manual_seed(0)
    cv2.setNumThreads(1)
    began = time.process_time()
    parts: list[Part] = [{"images": [], "true": [], "kinds": []} for _ in range(3)]
    known: dict[bytes, int] = {}
    for kind in CLASSES:
        try:
            data = load_blood_cells(kind)
        except FileNotFoundError:  # no table of subtypes
            break
        for part, X, y in zip(
            parts, (data.X_train, data.X_dev, data.X_test), (data.y_train, data.y_dev, data.y_test), strict=True
        ):
            for image, box in zip(X, y, strict=True):
                key = image.tobytes()
                if kind == "WBC" and len(part["images"]) != n_images:
                    known[key] = len(part["images"])
                    part["images"].append(image)
                    part["true"].append(np.array(box))
                    part["kinds"].append({kind})
                elif key in known:
                    part["kinds"][known[key]].add(kind)
    sizes = np.array([box[2:] - box[:2] for box in parts[0]["true"]])
    for part in parts:
        part["boxes"] = [propose(image, sizes) for image in part["images"]]
    print(f"proposals: {time.process_time() - began:.0f} s CPU", flush=True)
    alexnet = nn.Sequential(
        nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
    )  # fmt: skip
    began = time.process_time()
    train = parts[0]
    options: dict[str, Any] = {"size": SIZE, "counts": (20, 30), "rate": 3e-4}
    pretrain(alexnet, train["images"], train["boxes"], train["true"], epochs, np.random.default_rng(0), **options)
    print(f"network: {time.process_time() - began:.0f} s CPU", flush=True)
    began = time.process_time()
    for part in parts:
        maps = describe(part.pop("images"), part["boxes"], alexnet, cache, SIZE)
        part["features"] = [own.reshape(len(own), -1) for own in maps]
    print(f"features: {time.process_time() - began:.0f} s CPU", flush=True)
    return parts


def chosen(part: Part, which: Any, rows: list[np.ndarray], w: np.ndarray) -> list[np.ndarray]:
    """The boxes of the highest scores."""
    return [part["boxes"][i][np.argmax(x @ w)] for i, x in zip(which, rows, strict=True)]


class Trial:
    """A random draw of training images of a kind, and what is held out."""

    def __init__(self, train: Part, held: Part, kind: str, seed: int) -> None:
        from maxmargin.encode.candidate_encoder import CandidateEncoder
        from maxmargin.vision import nearest_candidates

        own = np.flatnonzero([kind in kinds for kinds in train["kinds"]])
        drawn = np.random.default_rng(seed).permutation(own)
        n_drawn = round(SHARE * len(own))
        self.train, self.held = train, held
        self.drawn, self.left_out = drawn[:n_drawn], drawn[n_drawn:]
        self.tested = np.flatnonzero([kind in kinds for kinds in held["kinds"]])
        rows = np.concatenate([train["features"][i] for i in self.drawn])
        self.centre = rows.mean(axis=0)
        self.scale = 1 / np.sqrt(np.mean(np.square(rows - self.centre).sum(axis=1)))
        x = self.rows(train, self.drawn)
        lists = [
            nearest_candidates(own, train["boxes"][i], train["true"][i]) for i, own in zip(self.drawn, x, strict=True)
        ]
        best, costs = [one.best for one in lists], [one.costs for one in lists]
        self.problem = CandidateEncoder.learn(x, best, dtype="float32", costs=costs).problem
        self.held_rows = self.rows(held, self.tested)

    def rows(self, part: Part, which: Any) -> list[np.ndarray]:
        """Features, centred and scaled as those of the training images."""
        return [self.scale * (part["features"][i] - self.centre) for i in which]

    def choose_strength(self) -> float:
        """The C of the highest mean IoU on the training images that are left out."""
        from maxmargin import BCFW
        from maxmargin.metrics import mean_iou

        rows, true = self.rows(self.train, self.left_out), [self.train["true"][i] for i in self.left_out]
        found = {}
        for C in STRENGTHS:
            w = BCFW(steps="pairwise").solve(self.problem, C, tol=0.01, max_passes=100, random_state=0).w
            found[C] = mean_iou(true, chosen(self.train, self.left_out, rows, w))
        print("mean IoU by C:", ", ".join(f"{C:g}: {value:.3f}" for C, value in found.items()), flush=True)
        return max(found, key=found.__getitem__)

    def run(self, solver: Any, C: float, passes: float, seed: int) -> Run:
        """The curves of a solver, and the mean IoU that it ends with."""
        from maxmargin.metrics import corloc, mean_iou

        true, ious = [self.held["true"][i] for i in self.tested], []

        def score(w: np.ndarray) -> float:
            boxes = chosen(self.held, self.tested, self.held_rows, w)
            ious.append(mean_iou(true, boxes))
            return corloc(true, boxes)

        curves = follow(solver, self.problem, C, score, passes=passes, random_state=seed)
        return {**curves, "iou": ious[-1]}


def run_all(n_trials: int, passes: float, n_images: int | None, epochs: int, cache: Path | None) -> list[Run]:
    train, dev, test = describe_images(n_images, epochs, cache)
    held = {key: dev[key] + test[key] for key in dev}
    C = Trial(train, held, "WBC", 0).choose_strength()
    runs = []
    for kind in CLASSES:
        if not any(kind in kinds for kinds in held["kinds"]):
            continue
        for seed in range(n_trials):
            trial = Trial(train, held, kind, seed)
            new = [
                {
                    "kind": kind, "C": C, "method": name, "seed": seed, "n": len(trial.drawn),
                    "tested": len(trial.tested), **trial.run(solver, C, passes, seed),
                }
                for name, solver in methods().items()
            ]  # fmt: skip
            lowest = min(run["primal"][-1] for run in new)
            runs += [{**run, "excess": (np.array(run["primal"]) / lowest - 1).tolist()} for run in new]
    return runs


def by_method(runs: list[Run], kind: str) -> dict[str, list[Run]]:
    """The trials of each method."""
    return {name: [run for run in runs if (run["kind"], run["method"]) == (kind, name)] for name in methods()}


def show(runs: list[Run], kind: str) -> None:
    def spread(values: list[float]) -> str:
        return f"{np.mean(values):.4f} ± {np.std(values):.4f}"

    trials = by_method(runs, kind)
    rows = [
        [
            name,
            f"{np.mean([run['passes'][-1] for run in some]):.0f} / {np.mean([run['seconds'][-1] for run in some]):.1f}",
            spread([run["primal"][-1] for run in some]),
            spread([run["excess"][-1] for run in some]),
            f"{np.mean([run['relative'][-1] for run in some]):.1e}",
            spread([run["score"][-1] for run in some]),
            spread([run["iou"] for run in some]),
        ]
        for name, some in trials.items()
    ]
    one = next(iter(trials.values()))
    size = f"{one[0]['n']} training and {one[0]['tested']} held-out images, C = {one[0]['C']:g}, {len(one)} trials"
    columns = ["", "passes / CPU s", "objective", "above the lowest", "gap", "CorLoc", "mean IoU"]
    print_table(f"{kind}: {size}", columns, rows)


def draw(runs: list[Run], path: Path) -> None:
    """A row of panels per kind: means over the trials by oracle calls, and bands of a standard deviation."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys(run["kind"] for run in runs))
    figure, panels = plt.subplots(
        len(kinds), 3, figsize=(14, 3.6 * len(kinds)), dpi=100, layout="constrained", squeeze=False
    )
    families = list(dict.fromkeys(name.split(", ")[-1] for name in methods()))
    for row, kind in zip(panels, kinds, strict=True):
        for name, some in by_method(runs, kind).items():
            parts = name.split(", ")
            look = {"color": f"C{families.index(parts[-1])}", "linestyle": STYLES.get(parts[-2:][0], "-.")}
            ticks = np.linspace(max(run["passes"][0] for run in some), min(run["passes"][-1] for run in some), 100)
            for panel, (key, label) in zip(row, COLUMNS.items(), strict=True):
                values = np.array([np.interp(ticks, run["passes"], run[key]) for run in some])
                mean, deviation = values.mean(axis=0), values.std(axis=0)
                floor = 0.0 if key == "score" else 1e-4
                panel.plot(ticks, np.maximum(mean, floor), label=name, **look)
                low, high = np.maximum(mean - deviation, floor), np.maximum(mean + deviation, floor)
                panel.fill_between(ticks, low, high, color=look["color"], alpha=0.1, linewidth=0)
                panel.set(xlabel="oracle calls / n", ylabel=label)
                panel.grid(alpha=0.3)
                if key == "score":
                    panel.set_ylim(0.5, 1.02)
                else:
                    panel.set_yscale("log")
                if key == "excess":
                    panel.set_ylim(5e-4, 3)
        row[0].set_title(kind, loc="left", fontweight="bold")
    save_with_legend(figure, panels[0, 0], path)


def main() -> None:
    arguments = parse_arguments(
        __doc__,
        ("--trials", {"type": int, "default": 10}),
        ("--passes", {"type": float, "default": 40.0, "help": "effective ones, of each solver"}),
        ("--images", {"type": int, "help": "of each part, at most"}),
        ("--epochs", {"type": int, "default": 8, "help": "of the training of the network"}),
        ("--cache", {"type": Path, "metavar": "FOLDER", "help": "keep features there"}),
        PNG,
    )
    options = arguments.trials, arguments.passes, arguments.images, arguments.epochs, arguments.cache
    runs = in_fresh_process(run_all, *options)
    for kind in dict.fromkeys(run["kind"] for run in runs):
        show(runs, kind)
    report_runs(runs, draw, arguments)


if __name__ == "__main__":
    main()
