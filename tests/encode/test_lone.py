"""Sequences that are labelled one at a time, in arrays that are used again: the same labels as together."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from maxmargin import ChainCRF, Tagger

WORDS = [f"w{k}" for k in range(60)]


def sequences(n, longest, seed=0):
    rng = np.random.default_rng(seed)
    return [
        [
            [WORDS[k] for k in rng.choice(60, rng.integers(4), replace=False)]
            for _ in range(rng.integers(1, longest + 1))
        ]
        for _ in range(n)
    ]


def labels_of(X):
    return [["ab"[len(item) % 2] for item in x] for x in X]


@pytest.fixture(scope="module", params=[True, False], ids=["observed", "all"])
def model(request):
    X = sequences(30, 5)
    return ChainCRF(only_observed=request.param, max_passes=10).fit(X, labels_of(X))


def alone(model, X):
    return [model.predict([x])[0].tolist() for x in X]


def together(model, X):
    return [labels.tolist() for labels in model.predict([*X, X[0]])[:-1]]


def test_one_sequence_after_another(model):
    X = [*sequences(40, 9, seed=1), [WORDS[:50]] * 200, *sequences(5, 3, seed=3)]
    assert alone(model, X) == together(model, X)
    assert max(lone.room[0] for lone in model._encoder.lone_sequences) >= max(map(len, X))


ODD = [
    [["w1", "w1"], ["w2"]],
    [["w1", "nobody knows"], []],
    [{"w1": 1, "w2": True, "w3": 0}, {"w3": "x"}],
    [{"w1": 0.5}, {"w2": 2}],
    (["w1"], ("w2", "w3"), {"w4"}),
    [{"nested": {"w1": 1}}],
]


@pytest.mark.parametrize("x", ODD, ids=str)
def test_odd_features(model, x):
    model.predict([[["w1"]]])
    for _ in range(2):  # nothing of the first is left for the second
        assert alone(model, [x]) == together(model, [x])
    assert alone(model, [[["w1"], ["w2"]]]) == together(model, [[["w1"], ["w2"]]])


def test_errors_leave_nothing_behind(model):
    for bad in ([["w1"], 3], [["w1", 3]], [["w1"], "w2"], [{"w1": None}]):
        with pytest.raises(TypeError, match=r"^X\[0\] has"):
            model.predict([bad])
    assert alone(model, [[["w1"]]]) == together(model, [[["w1"]]])


def test_each_thread_has_its_own(model):
    X = sequences(50, 20, seed=4)
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda x: model.predict([x])[0].tolist(), X * 4)]
    assert found == together(model, X) * 4


def test_copies_and_other_weights(model):
    x = [["w1"], ["w2", "w3"], []]
    model.predict([x])
    again = pickle.loads(pickle.dumps(model))
    assert "lone_sequences" not in vars(again._encoder)
    assert alone(again, [x]) == alone(model, [x])
    again._w *= -1
    assert alone(again, [x]) == together(again, [x]) != alone(model, [x])


def test_lengths_that_cannot_be():
    allowed = {("a", "b"), ("b", "c")}
    model = ChainCRF(allowed_transitions=allowed, only_observed=True, max_passes=2)
    model.fit([[["w1"], ["w2"], ["w3"]]], [["a", "b", "c"]])
    assert len(model.predict([[["w1"]] * 3])[0]) == 3
    with pytest.raises(ValueError, match=r"No labelling of X\[0\], of length 4, keeps to allowed_transitions"):
        model.predict([[["w1"]] * 4])


def test_no_room_is_kept_for_very_long_sequences(model):
    x = [["w1"], ["w2", "w3"]] * 3000
    assert alone(model, [x]) == together(model, [x])
    model.predict([x[:2]])
    assert max(lone.room[0] for lone in model._encoder.lone_sequences) < len(x)


def calls_of(function):
    """How many functions are called, which no clock disturbs."""
    count = 0

    def note(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("make", [ChainCRF, Tagger])
def test_one_sequence_takes_a_fraction_of_the_calls_of_two(make):
    if make is ChainCRF:
        x, y = [["w1", "w2"], ["w3"], ["w2"]], ["a", "b", "a"]
    else:
        x, y = ["Ann", "left", "home"], ["B-PER", "O", "O"]
    model = make().fit([x, x], [y, y])
    for sequences in ([x], [x, x]):
        model.predict(sequences)  # what is kept for later calls
    assert calls_of(lambda: model.predict([x])) < calls_of(lambda: model.predict([x, x])) / 3
