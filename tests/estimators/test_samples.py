"""Outputs that models of trees, alignments and graphs draw: parts come as often as their probabilities say."""

import numpy as np
import pytest

from maxmargin import AlignmentCRF, DependencyCRF, GraphCRF, SpanCRF

pytestmark = pytest.mark.usefixtures("interpreted_loops")

N_DRAWN = 400
HEADS = [2, 0, 2]
ARCS = np.eye(4)[HEADS][:, :, np.newaxis]
SPANS = np.array([[1.0], [0.0], [1.0]])  # of the spans 0:1, 0:2 and 1:2
GRAPH = np.eye(2)[[0, 0, 1]], [(0, 1), (1, 2), (2, 0)]


def tell_heads(heads):
    return np.eye(4)[heads]


def tell_links(links):
    return np.eye(4)[links]  # of three right items; the last row is that of none, -1


def tell_spans(spans):
    table = np.zeros((2, 3, 1))
    for begin, end, _ in spans:
        table[begin, end] = 1
    return table


def tell_labels(labels):
    return np.eye(2)[np.searchsorted(["a", "b"], labels)]


@pytest.mark.parametrize(
    ("model", "x", "y", "tell"),
    [
        (DependencyCRF(), ARCS, HEADS, tell_heads),
        (DependencyCRF(projective=False), ARCS, HEADS, tell_heads),
        (SpanCRF(), SPANS, [(0, 1, "X"), (1, 2, "X")], tell_spans),
        (AlignmentCRF(), ("abc", "bcd"), "DMMI", tell_links),
        (GraphCRF(), GRAPH, ["a", "a", "b"], tell_labels),
    ],
)
def test_parts_come_as_often_as_they_are_probable(model, x, y, tell):
    model.fit([x], [y])
    drawn = model.sample([x], N_DRAWN, random_state=0)[0]
    found = np.mean([tell(output) for output in drawn], axis=0)
    probabilities = model.predict_marginals([x])[0]
    deviation = np.sqrt(probabilities * (1 - probabilities) / N_DRAWN)
    assert (np.abs(found - probabilities) <= 4.5 * deviation + 1e-9).all()
    assert ((probabilities > 0.02) & (probabilities < 0.98)).any()
    again = model.sample([x], N_DRAWN, random_state=0)[0]
    assert all(np.array_equal(one, other) for one, other in zip(drawn, again, strict=True))
