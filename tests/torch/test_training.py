"""Heads on networks as people train them: attention masks, mixed precision, copies, files, and no gradients."""

import copy
import io

import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.torch import (
    AlignmentHead,
    CandidateHead,
    ChainHead,
    DependencyHead,
    GraphCutHead,
    MatchingHead,
    SegmentHead,
    SpanHead,
    TreeHead,
    crf_loss,
    decode,
    hinge_loss,
)

pytestmark = pytest.mark.usefixtures("interpreted_loops")

HEADS = {
    "chains": (lambda: ChainHead(3, 2), (2, 3, 3), []),
    "trees": (lambda: TreeHead(3, 2), (2, 3, 3), [[[-1, 0, 1]] * 2]),
    "segments": (lambda: SegmentHead(3, 2, 2), (2, 3, 3), []),
    "dependencies": (lambda: DependencyHead(3), (2, 2, 3, 3), []),
    "labelled dependencies": (lambda: DependencyHead(3, 2), (2, 2, 3, 3), []),
    "spans": (lambda: SpanHead(3, 2), (2, 2, 3, 3), []),
    "candidates": (lambda: CandidateHead(3), (2, 3, 3), []),
    "cuts": (lambda: GraphCutHead(3), (2, 3, 3), [[(0, 1), (1, 2)]]),
    "matchings": (lambda: MatchingHead(3), (2, 2, 2, 3), []),
    "alignments": (lambda: AlignmentHead(3), (2, 2, 2, 3), []),
}


@pytest.fixture(params=HEADS)
def head_and_inputs(request):
    torch.manual_seed(0)
    make, shape, others = HEADS[request.param]
    return make(), torch.randn(shape), others


def test_token_classification_as_with_transformers():
    """Hidden states, an attention mask of integers, labels of -100 for tokens that begin no word."""
    hidden, head = torch.randn(2, 6, 4, requires_grad=True), ChainHead(4, 3)
    attention_mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
    labels = torch.tensor([[-100, 0, -100, 2, 1, -100], [-100, 1, 1, -100, -100, -100]])
    loss = crf_loss(head(hidden, attention_mask), labels)
    loss.backward()
    words = [hidden[0, [1, 3, 4]], hidden[1, [1, 2]]]
    alone = [crf_loss(head(x[None]), [y]) for x, y in zip(words, ([0, 2, 1], [1, 1]), strict=True)]
    torch.testing.assert_close(loss, torch.stack(alone).mean())
    assert hidden.grad[labels == -100].eq(0).all()
    assert (decode(head(hidden, attention_mask)) == -1).equal(attention_mask == 0)


def test_mixed_precision(head_and_inputs):
    head, features, others = head_and_inputs
    with torch.autocast("cpu", dtype=torch.bfloat16):
        potentials = head(features, *others)
        value = hinge_loss(potentials, decode(potentials))
    value.backward()
    assert potentials.tensors[0].dtype == torch.bfloat16
    assert value.dtype == torch.float32
    assert all(weights.grad.dtype == torch.float32 for weights in head.parameters() if weights.grad is not None)
    assert any(weights.grad is not None for weights in head.parameters())


def test_copies_and_files(head_and_inputs):
    head, features, others = head_and_inputs
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    other = copy.deepcopy(head)
    for weights in other.parameters():
        weights.data.zero_()
    other.load_state_dict(torch.load(file, weights_only=True))
    for loaded in (other, copy.deepcopy(head)):
        for one, expected in zip(loaded(features, *others).tensors, head(features, *others).tensors, strict=True):
            assert torch.equal(one, expected)


def test_without_gradients(head_and_inputs):
    head, features, others = head_and_inputs
    potentials = head(features, *others)
    y = decode(potentials)
    expected = hinge_loss(potentials, y)
    assert expected.requires_grad
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            found = hinge_loss(head(features, *others), y)
        assert not found.requires_grad
        torch.testing.assert_close(found, expected.detach())
