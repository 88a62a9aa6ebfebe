import sys

import numpy as np
import pytest

from maxmargin import GraphCutSVM
from maxmargin.datasets import load_horses
from maxmargin.encode.cut_encoder import stack_graphs
from maxmargin.vision import grid_edges, superpixel_graph

pytest.importorskip("skimage")


@pytest.fixture(scope="module")
def image():
    """A red disc on a noisy green ground."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:40, :50]
    mask = ((rows - 18) ** 2 + (columns - 25) ** 2 < 144).astype(int)
    colors = np.where(mask[..., None], [200, 60, 40], [60, 160, 60]) + rng.normal(scale=8, size=(40, 50, 3))
    return np.clip(colors, 0, 255).astype(np.uint8), mask


def test_grids_join_all_neighbours_once():
    for height, width in ((1, 1), (1, 4), (3, 1), (4, 5)):
        edges = grid_edges(height, width)
        assert len(edges) == height * (width - 1) + (height - 1) * width
        assert len({frozenset(edge) for edge in edges.tolist()}) == len(edges)
        across = np.abs(np.subtract(*np.divmod(edges, width)[0].T)) + np.abs(np.subtract(*np.divmod(edges, width)[1].T))
        assert (across == 1).all()


def test_superpixels_are_a_valid_graph(image):
    pixels, mask = image
    graph = superpixel_graph(pixels, n_segments=60)
    assert 20 < len(graph.nodes) < 100
    assert np.array_equal(np.bincount(graph.segments.ravel()), graph.sizes)
    stack_graphs([graph.graph])  # checks edges and features
    touching = {
        tuple(sorted((int(a), int(b)))) for a, b in graph.segments.ravel()[grid_edges(40, 50)].reshape(-1, 2) if a != b
    }
    assert {tuple(edge) for edge in graph.edges.tolist()} == touching
    labels = graph.labels_of(mask)
    assert np.mean(labels[graph.segments] == mask) > 0.95
    assert (graph.edge_features <= np.maximum(graph.edge_features[:, [1]], 1)).all()  # similarities are at most 1


def test_gray_and_float_images_and_single_superpixels(image):
    pixels, _ = image
    assert np.allclose(superpixel_graph(pixels / 255, 60).nodes, superpixel_graph(pixels, 60).nodes)
    gray = superpixel_graph(pixels[..., 0], 60)
    assert gray.nodes.shape[1] == superpixel_graph(pixels, 60).nodes.shape[1]
    alone = superpixel_graph(pixels[:1, :1])
    assert (len(alone.nodes), len(alone.edges)) == (1, 0)
    assert np.isfinite(alone.nodes).all()


def test_labels_are_those_of_most_pixels(image):
    graph = superpixel_graph(image[0], n_segments=30)
    labels = np.random.default_rng(0).choice(["cat", "dog", "void"], p=[0.2, 0.3, 0.5], size=graph.segments.shape)
    labels[graph.segments <= 1] = "void"
    labels[graph.segments == 2] = "cat"
    inside = [labels[graph.segments == k] for k in range(len(graph.sizes))]
    most = [max(("cat", "dog", "void"), key=lambda name, x=x: np.sum(x == name)) for x in inside]
    assert graph.labels_of(labels).tolist() == most
    most = [max(("cat", "dog"), key=lambda name, x=x: np.sum(x == name)) for x in inside]
    assert graph.labels_of(labels, void="void").tolist() == ["dog", "dog", *most[2:]]  # "dog" in most of the image
    known = [np.sum(x != "void") for x in inside]
    weights = [count if 2 * count >= len(x) else 0 for count, x in zip(known, inside, strict=True)]
    assert graph.weights_of(labels, void="void").tolist() == weights
    assert {0.0, graph.sizes[2]} <= {*weights}
    kept = np.array(weights) > 0
    nodes, edges, edge_features = graph.subgraph(kept)
    assert np.array_equal(nodes, graph.nodes[kept])
    names = np.flatnonzero(kept)
    found = {(*names[edge].tolist(), *row.tolist()) for edge, row in zip(edges, edge_features, strict=True)}
    rows = zip(graph.edges, graph.edge_features, strict=True)
    assert found == {(*edge.tolist(), *row.tolist()) for edge, row in rows if kept[edge].all()}


def test_your_own_features_are_averaged(image):
    own = np.random.default_rng(0).normal(size=(40, 50, 2))
    plain, graph = superpixel_graph(image[0], 30), superpixel_graph(image[0], 30, features=own)
    assert np.array_equal(graph.nodes[:, :-6], plain.nodes)
    means = [own[graph.segments == k].mean(axis=0) for k in range(len(graph.sizes))]
    assert np.allclose(graph.nodes[:, -6:-4], means)
    near = {0, *graph.edges[graph.edges[:, 0] == 0, 1].tolist()}
    assert np.allclose(graph.nodes[0, -4:-2], own[np.isin(graph.segments, [*near])].mean(axis=0))
    assert np.allclose(superpixel_graph(image[0], 30, features=own[..., 0]).nodes[:, -3], graph.nodes[:, -6])


@pytest.mark.long
def test_a_model_of_superpixels(image):
    pixels, mask = image
    graph = superpixel_graph(pixels, 60)
    labels = graph.labels_of(mask)
    model = GraphCutSVM(C=10.0, tol=0.1, solver="frank-wolfe").fit([graph.graph], [labels], node_weight=[graph.sizes])
    assert model.score([graph.graph], [labels], node_weight=[graph.sizes]) > 0.97


def test_bad_images(image, monkeypatch):
    with pytest.raises(ValueError, match=r"image must have the shape \(h, w, 3\) or \(h, w\), not \(40, 50, 2\)"):
        superpixel_graph(image[0][..., :2])
    with pytest.raises(ValueError, match=r"features must be an array of numbers of shape \(40, 50\) or \(40, 50, K\)"):
        superpixel_graph(image[0], features=np.zeros((50, 40)))
    with pytest.raises(ValueError, match="features must be finite"):
        superpixel_graph(image[0], features=np.full((40, 50), np.nan))
    graph = superpixel_graph(image[0], 4)
    with pytest.raises(ValueError, match=r"labels must have the shape of the image, \(40, 50\), not \(50, 40\)"):
        graph.labels_of(np.zeros((50, 40)))
    with pytest.raises(ValueError, match="labels must hold another label than 0, which is void"):
        graph.labels_of(np.zeros((40, 50)), void=0)
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ImportError, match=r"pip install maxmargin\[vision\]"):
        superpixel_graph(image[0])


def test_horses(data_folder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"horse001\.jpg"):
        load_horses(tmp_path)
    horses = load_horses(data_folder)
    assert (len(horses.X_train), len(horses.X_test)) == (278, 49)
    for image, mask in zip(horses.X_test, horses.y_test, strict=True):
        assert image.shape == (*mask.shape, 3)
        assert set(np.unique(mask)) == {0, 1}


def test_what_is_no_image_is_named():
    with pytest.raises(TypeError, match=r"image must be an array of numbers, not 'photo\.png'"):
        superpixel_graph("photo.png")
    with pytest.raises(ValueError, match="n_segments must be an integer, at least 1, not 0"):
        superpixel_graph(np.zeros((4, 4)), n_segments=0)


def test_annotations_agree_with_label_maps(image):
    pixels, mask = image
    graph = superpixel_graph(pixels, n_segments=60)
    labels = graph.labels_of(mask)
    assert graph.tags_of(mask).labels == [0, 1]
    assert graph.tags_of(mask, void=0).labels == [1]
    boxes = graph.boxes_of(mask, 1)
    inside = np.unique(np.concatenate(boxes.lines))
    assert boxes.label == 1
    assert np.isin(np.flatnonzero(labels), inside).all()  # most of whose pixels are in the mask are in its box
    assert len(inside) < len(labels)
    assert len({tuple(line) for line in boxes.lines}) == len(boxes.lines)
    seeds = graph.seeds_of(mask, 3, random_state=0)
    assert np.array_equal(labels[seeds.nodes], seeds.labels)
    assert np.bincount(seeds.labels).tolist() == [3, 3]
    assert np.isin(seeds.labels, graph.seeds_of(mask, 3, void=0, random_state=0).labels).sum() == 3


def test_each_region_has_a_box(image):
    graph = superpixel_graph(image[0], n_segments=60)
    two = np.zeros((40, 50), int)
    two[2:12, 3:20] = two[25:38, 30:48] = 1
    first, second = graph.boxes(1, [(2, 3, 12, 20)]), graph.boxes(1, [(25, 30, 38, 48)])
    both = {tuple(line) for line in (*first.lines, *second.lines)}
    assert {tuple(line) for line in graph.boxes_of(two, 1).lines} == both


@pytest.mark.parametrize("box", [(-1, 0, 5, 5), (0, 0, 41, 5), (5, 5, 5, 9), (0, 10, 5, 51)])
def test_boxes_are_in_the_image(image, box):
    graph = superpixel_graph(image[0], n_segments=60)
    with pytest.raises(ValueError, match=r"boxes\[1\] is \(.*\), but boxes are .* 40 pixels high and 50 wide"):
        graph.boxes(1, [(0, 0, 5, 5), box])
