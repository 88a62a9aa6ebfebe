"""The examples that need PyTorch, on data of a few seconds."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"')

from maxmargin.metrics import iou
from maxmargin.torch import ProxLinear, crf_loss
from maxmargin.vision import BoxRegressor

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_neural_tagger_learns(interpreted_loops):
    example = load("neural_tagger")
    sentences = [[("The", "DT"), ("Dog", "NN"), ("ran", "VBD")], [("It", "PRP"), ("ran", "VBD")]] * 4
    tags = [["B-NP", "I-NP", "B-VP"], ["B-NP", "B-VP"]] * 4
    labels = sorted({tag for row in tags for tag in row})
    vocabulary = example.Vocabulary(sentences)
    X = [vocabulary.encode(sentence) for sentence in sentences]
    y = [torch.tensor([labels.index(tag) for tag in row]) for row in tags]
    torch.manual_seed(0)
    tagger = example.Tagger(vocabulary, len(labels), n_hidden=8)
    example.train(tagger, crf_loss, X, y, epochs=25, batch_size=4)
    assert example.tag(tagger, X, labels) == tags
    assert example.shape("McX-12") == "AaA-0"


def test_the_parts_of_localization():
    pytest.importorskip("cv2.ximgproc", reason="OpenCV with contributed modules is not installed")
    example = load("localization")
    image = np.full((120, 160, 3), 200, np.uint8)
    image[40:80, 60:110] = [90, 40, 150]
    true = np.array([40, 60, 80, 110])
    boxes = example.propose(image, np.array([[40, 50]]))
    assert (((boxes[:, 2:] - boxes[:, :2]) >= [32, 40]) & ((boxes[:, 2:] - boxes[:, :2]) <= [44, 55])).all()
    around = example.moved(true, image.shape, 20, np.random.default_rng(0))
    crops = example.describe([image], [around], torch.nn.Identity())[0]
    assert crops.shape == (len(around), 3, example.CROP, example.CROP)
    backbone = example.Backbone(5)
    example.pretrain(backbone, [image], [boxes], [true], 1, np.random.default_rng(0))
    assert not any(parameter.requires_grad for parameter in backbone.parameters())
    many, start = example.moved(true, image.shape, 200, np.random.default_rng(1)), true + np.array([8, -8, 8, -8])
    regressor = BoxRegressor().fit(example.describe([image], [many], backbone), [many], [true])
    *_, (rounds, (found,)) = example.refine([image], [start], backbone, regressor)
    assert rounds == example.ROUNDS
    assert iou(found, true) > iou(start, true)
    torch.manual_seed(0)
    assert example.Backbone(5)(torch.zeros(2, 3, example.CROP, example.CROP)).shape == (2, 5, 3, 3)
    lists = [torch.randn(1, 4, 5, 9) for _ in range(3)]
    trained = ProxLinear(max_steps=2).solve(example.Score(5), lists, [torch.tensor([0])] * 3, is_rowwise=True)
    assert trained.trace.primal[-1] <= trained.trace.primal[0]
