"""Outputs over images: masks of labels with what is proven of them, boxes and detections, poses."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

import numpy as np

from maxmargin import inference
from maxmargin.display.markup import Markup, join, table, tag
from maxmargin.display.pictures import LARGEST, as_link, as_pixels
from maxmargin.drawings.label_drawings import as_labels, confusions_of, draw_labels, tell_confusions
from maxmargin.drawings.outcomes import Drawing, Model, Outcome
from maxmargin.metrics.overlap import iou
from maxmargin.problem import AnyProblem
from maxmargin.structures.boxes.box_problem import BoxProblem
from maxmargin.vision.detections import find_detections

GOLDEN = 0.618034  # of the circle of hues from one label to the next
FIRST_HUE = 0.58  # blue: red is for what is wrong
OPACITY = 0.5  # of masks
WRONG = (255, 40, 40, 255)
SIZE = 192  # pixels across of a drawing
MOST_BOXES = 5  # that are looked for in an image
HALF = 0.5  # the IoU from which on a box counts as right


def palette(n: int) -> np.ndarray:
    """(n, 3) bytes: colours that are apart, the first ones most."""
    found = [colorsys.hls_to_rgb((FIRST_HUE + k * GOLDEN) % 1, 0.55 if k % 2 else 0.45, 0.7) for k in range(n)]
    return np.round(255 * np.array(found).reshape(-1, 3)).astype(np.uint8)


# --- masks ------------------------------------------------------------------------------------------------------------


def ask_proofs(model: Model, problem: AnyProblem) -> list[inference.Prediction]:
    """What is proven of the labels of each graph."""
    return inference.certified_outputs(problem, model._w, model.n_jobs)


def tell_proof(known: inference.Prediction) -> str:
    """What is proven of a labelling, in words."""
    if known.is_exact:
        return "proven to score highest"
    below = f"at most {known.bound - known.score:.3g} below the highest score"
    return f"{below}, {100 * known.integrality:.0f} % of the nodes are integral in the relaxation"


def draw_mask(example: Outcome) -> Markup:
    """Labels of pixels or superpixels over an image: true ones, predicted ones, and where they differ.

    Graphs of which no image is shown have their labels in a row.
    """
    proof = tag("div", tell_proof(example.known), class_="about")
    placed = place_nodes(example)
    if placed is None:
        return join([proof, draw_labels(example._replace(known=None))])
    image, segments = placed
    true, found = (np.array(as_labels(output), object) for output in (example.true, example.found))
    step = max(1, -(-max(segments.shape) // LARGEST))
    nodes = segments[::step, ::step]
    colours, index = palette(len(example.labels)), {label: k for k, label in enumerate(example.labels)}
    masks = [colours[np.array([index[label] for label in labels])[nodes]] for labels in (true, found)]
    is_wrong = (true != found)[nodes]
    wrong = np.where(is_wrong[:, :, np.newaxis], np.array(WRONG), 0).astype(np.uint8)
    titles = ("true", "found", f"{100 * (true != found)[segments].mean():.1f} % of pixels wrong")
    ground, again = _ground(image, nodes.shape, f"image-{example.i}")
    panels = [
        _over_image(under, nodes.shape, [_layer(pixels, opacity, nodes.shape)], title)
        for under, pixels, opacity, title in zip(
            (ground, again, again), (*masks, wrong), (OPACITY, OPACITY, 0.8), titles, strict=True
        )
    ]
    return join([proof, tag("div", *panels, class_="row"), draw_legend(example.labels, {*true, *found})])


def place_nodes(example: Outcome) -> tuple[np.ndarray, np.ndarray] | None:
    """The image of an example and the node of each of its pixels, if it is shown."""
    if example.shown is None:
        return None
    n_nodes = len(as_labels(example.found))
    if isinstance(example.shown, tuple):
        image, segments = map(np.asarray, example.shown)
    else:
        image = np.asarray(example.shown)
        segments = np.arange(image.shape[0] * image.shape[1]).reshape(image.shape[:2])
        if segments.size != n_nodes:
            raise ValueError(
                f"shown[{example.i}] must be an image of {n_nodes} pixels, the nodes, not {segments.size}."
            )
    if segments.shape != image.shape[:2] or segments.min(initial=0) < 0 or segments.max(initial=-1) >= n_nodes:
        raise ValueError(f"shown[{example.i}] must have a node, from 0 to {n_nodes - 1}, for each pixel of its image.")
    return image, segments


def _layer(pixels: np.ndarray, opacity: float, shape: tuple[int, ...]) -> Markup:
    """Pixels, stretched to an image of a height and width."""
    size = {"height": shape[0], "width": shape[1], "preserveAspectRatio": "none", "class_": "pixels"}
    return tag("image", href=as_link(pixels), opacity=opacity, **size)


def _ground(image: object, shape: tuple[int, ...], name: str) -> tuple[Markup, Markup]:
    """An image that is as high and wide as told, and the same again; gray, if there is none."""
    if image is None:
        gray = tag("rect", height=shape[0], width=shape[1], class_="ground")
        return gray, gray
    pixels = _layer(as_pixels(np.asarray(image)), 1, shape)
    return tag("g", pixels, id=name), tag("use", href=f"#{name}")


def _over_image(ground: Markup, shape: tuple[int, ...], marks: Sequence[Markup], title: str = "") -> Markup:
    """Marks over what is that high and wide."""
    view = {"viewBox": f"0 0 {shape[1]} {shape[0]}", "width": SIZE, "role": "img", "aria_label": title or "image"}
    return tag("figure", tag("svg", ground, *marks, **view), tag("figcaption", title) if title else "")


def draw_legend(labels: Sequence[object], present: set[object]) -> Markup:
    """Which label has which colour, of those that are there."""
    chips = []
    for label, colour in zip(labels, palette(len(labels)).tolist(), strict=True):
        if label in present:
            square = tag("rect", width=12, height=12, fill="#{:02x}{:02x}{:02x}".format(*colour))
            chips += [tag("svg", square, width=12, height=12, aria_hidden="true"), f" {label}\u2003"]
    return tag("div", *chips, class_="about")


def tell_masks(examples: Sequence[Outcome]) -> list[Markup]:
    """What is taken for what, and of how many predictions it is proven that they are the best."""
    n_proven = sum(example.known.is_exact for example in examples)
    proven = f"{n_proven:,} of {len(examples):,} predictions are proven to have the highest score under the model."
    return [tag("p", proven), *tell_confusions(examples)]


# --- boxes ------------------------------------------------------------------------------------------------------------


def ask_detections(model: Model, problem: BoxProblem) -> list[tuple[np.ndarray, np.ndarray]]:
    """Several boxes of each image, with their scores: as `BoxSVM.detect` finds them."""
    return find_detections(problem, model._w, MOST_BOXES, 0.0, 0.0, model.n_jobs)


def draw_boxes(example: Outcome) -> Markup:
    """Boxes over an image: the true one, the best one, and other detections."""
    more, scores = example.known
    marks = []
    for box, score in zip(np.asarray(more).tolist(), scores, strict=True):
        if box != [*np.asarray(example.found).tolist()]:
            marks.append(_rectangle(box, "other", f"detected, score {score:.3g}"))
    if np.any(example.found):
        marks.append(_rectangle(example.found, "spurious" if _overlap(example) < HALF else "right", "found"))
    if example.true is not None and np.any(example.true):
        marks.append(_rectangle(example.true, "missed", "true"))
    return _mark_image(example, marks)


def _mark_image(example: Outcome, marks: Sequence[Markup]) -> Markup:
    """Marks over the image of an example, in cells."""
    shape = np.shape(example.x)[:2]
    ground, _ = _ground(example.shown, shape, f"image-{example.i}")
    return _over_image(ground, shape, marks)


def _rectangle(box: Sequence[int], style: str, title: str) -> Markup:
    top, left, bottom, right = (int(value) for value in box)
    place = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return tag("rect", tag("title", title), class_=f"box {style}", **place)


def _overlap(example: Outcome) -> float:
    true = np.zeros(4, int) if example.true is None else np.asarray(example.true)
    found = np.asarray(example.found)
    if not true.any() or not found.any():
        return float(true.any() == found.any())
    return float(iou(true[np.newaxis], found[np.newaxis])[0])


def tell_boxes(examples: Sequence[Outcome]) -> list[Markup]:
    """The mean overlap of boxes, and how many are right."""
    overlaps = np.array([_overlap(example) for example in examples])
    rows = [
        ("mean IoU", f"{100 * overlaps.mean():.2f}"),
        (f"IoU of {HALF} or more", f"{int((overlaps >= HALF).sum()):,} of {len(overlaps):,}"),
    ]
    return [table((), rows, class_="numbers")]


# --- poses ------------------------------------------------------------------------------------------------------------


def draw_pose(example: Outcome) -> Markup:
    """Joints and the edges between them over an image: true ones dashed, predicted ones solid."""
    marks = []
    for pose, style in ((example.found, "right"), (example.true, "missed")):
        joints = np.asarray(pose, float) + 0.5
        marks += [
            tag("line", x1=joints[a, 0], y1=joints[a, 1], x2=joints[b, 0], y2=joints[b, 1], class_=f"box {style}")
            for a, b in example.model.edges
        ]
        for k, (x, y) in enumerate(joints.tolist()):
            marks.append(tag("circle", tag("title", f"joint {k}"), cx=x, cy=y, r=0.25, class_=f"box {style}"))
    return _mark_image(example, marks)


MASKS = Drawing(draw_mask, tell_masks, ask_proofs, as_labels, confusions_of)
BOXES = Drawing(
    draw_boxes,
    tell_boxes,
    ask_detections,
    note="The true box is white and dashed, the best one green, or red if their IoU is below a half; others are thin.",
)
POSES = Drawing(draw_pose, note="True joints are white and dashed, predicted ones green.")
