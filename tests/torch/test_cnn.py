import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.vision import cnn_features

IMAGES = [np.random.default_rng(k).integers(0, 256, (20, 30, 3)).astype(np.uint8) for k in range(2)]
BOXES = [np.array([[0, 0, 8, 8], [4, 5, 20, 30], [1, 1, 2, 2]]), np.array([[3, 3, 11, 11]])]


class Counting(torch.nn.Module):
    """Means over quarters of a crop; counts how often it is asked."""

    def __init__(self):
        super().__init__()
        self.pool, self.calls = torch.nn.AdaptiveAvgPool2d(2), 0

    def forward(self, crops):
        self.calls += 1
        return self.pool(crops)


def test_features_are_those_of_the_crops():
    found = cnn_features(IMAGES, BOXES, Counting(), size=8, batch_size=2)
    assert [x.shape for x in found] == [(3, 3, 2, 2), (1, 3, 2, 2)]
    crop = IMAGES[0][:8, :8].astype(float) / 255  # as large as the crops: not rescaled
    expected = crop.reshape(2, 4, 2, 4, 3).mean(axis=(1, 3)).transpose(2, 0, 1)
    np.testing.assert_allclose(found[0][0], expected, atol=1e-6)
    np.testing.assert_allclose(found[0][2], np.tile((IMAGES[0][1, 1] / 255)[:, None, None], (1, 2, 2)), atol=1e-6)


def test_features_are_kept_on_disk(tmp_path):
    backbone = Counting()
    first = cnn_features(IMAGES, BOXES, backbone, size=8, cache=tmp_path)
    calls = backbone.calls
    again = cnn_features(IMAGES, BOXES, backbone, size=8, cache=tmp_path, progress=True)
    assert backbone.calls == calls
    assert all(map(np.array_equal, first, again))
    cnn_features(IMAGES, BOXES, backbone, size=4, cache=tmp_path)
    assert backbone.calls == calls + 2
    learnt = torch.nn.Sequential(torch.nn.Conv2d(3, 2, 3), torch.nn.Flatten())
    one = cnn_features(IMAGES, BOXES, learnt, size=8, cache=tmp_path)
    torch.nn.init.zeros_(learnt[0].weight)
    other = cnn_features(IMAGES, BOXES, learnt, size=8, cache=tmp_path)
    assert not np.array_equal(one[0], other[0])  # another network
    assert learnt.training


def test_bad_input():
    with pytest.raises(ValueError, match="boxes must be of 2 images"):
        cnn_features(IMAGES, BOXES[:1], Counting())
    with pytest.raises(ValueError, match=r"images\[0\] must be an \(H, W, 3\) array of bytes"):
        cnn_features([np.zeros((2, 2))], BOXES[:1], Counting())
    with pytest.raises(ValueError, match=r"boxes\[0\]\[0\] = .* is not inside the image, which has 20 x 30 pixels"):
        cnn_features(IMAGES[:1], [[[0, 0, 21, 5]]], Counting())
    with pytest.raises(TypeError, match=r"backbone must be a torch\.nn\.Module"):
        cnn_features(IMAGES, BOXES, lambda x: x)
