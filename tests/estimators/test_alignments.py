import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import AlignmentCRF, AlignmentSVM, Status, load
from tests import naive

pytestmark = pytest.mark.usefixtures("interpreted_loops")

WORDS = [("colour", "color"), ("grey", "gray"), ("theatre", "theater"), ("plough", "plow"), ("aeon", "eon")]
OPERATIONS = ["MMMMDM", "MMMM", "MMMMMIMD", "MMMMDD", "DMMM"]


@pytest.fixture(scope="module")
def rows():
    """Slow and fast readings of the same numbers."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(8):
        values = np.cumsum(rng.random((3, 2)), axis=0)
        moves = ["M", *rng.choice(["M", "D", "I"], 2)]
        left, right = (np.cumsum([move != other for move in moves]) - 1 for other in "ID")
        X.append(tuple(values[np.unique(side, return_index=True)[1]] + 0.01 * rng.normal() for side in (left, right)))
        y.append("".join(moves))
    return X, y


def test_spelling_variants():
    model = AlignmentSVM(C=10.0, tol=1e-2, random_state=0).fit(WORDS, OPERATIONS)
    assert model.status_ is Status.OPTIMAL
    assert model.score(WORDS, OPERATIONS) == 1
    assert model.predict([("honour", "honor")])[0].tolist() == [0, 1, 2, 3, -1, 4]
    assert model.coef_.same[0] > 0
    names = [tuple(pair) for pair in model.pairs_.tolist()]
    assert model.n_features_in_ == 1 + len(names)
    assert model.coef_.pairs.shape == (len(names),)
    assert {("c", "c"), ("e", "a"), ("u", ""), ("", "e")} <= {*names}
    strange = model.predict([("çà", "çàx")])[0]  # symbols that it has never seen can be the same
    assert strange.tolist() == [0, 1]
    assert [output.tolist() for output in model.predict([("", "ab"), ("ab", ""), ("", "")])] == [[], [-1, -1], []]


def test_lists_of_strings_are_strings():
    words = [([*left], tuple(right)) for left, right in WORDS]
    one, other = (AlignmentCRF().fit(X, OPERATIONS) for X in (WORDS, words))
    assert np.array_equal(one._w, other._w)


def test_alignments_can_be_given_in_many_ways():
    links = [[(0, 0), (1, 1), (2, 2), (3, 3), (5, 4)], [(k, k) for k in range(4)], None, None, [(1, 0), (2, 1), (3, 2)]]
    links[2], links[3] = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 6)], {(k, k) for k in range(4)}
    matches = [[0, 1, 2, 3, -1, 4], [0, 1, 2, 3], [0, 1, 2, 3, 4, 6, -1], [0, 1, 2, 3, -1, -1], [-1, 0, 1, 2]]
    models = [AlignmentCRF().fit(WORDS, y) for y in (OPERATIONS, links, matches)]
    assert all(np.array_equal(models[0]._w, model._w) for model in models)


@pytest.mark.parametrize("warp", [False, True])
def test_predictions_are_the_best_alignments(rows, warp):
    X, y = rows
    truth = y if warp else [[-1] * len(left) for left, _ in X]
    model = AlignmentCRF(warp=warp).fit(X, truth)
    weights, moves = model.coef_.links, model.coef_.moves.ravel()
    predictions = zip(X, model.predict(X), model.predict_topk(X, 3), model.predict_marginals(X), strict=True)
    for i, ((left, right), best, (some, scores), means) in enumerate(predictions):
        m, n = len(left), len(right)
        every = [*naive.alignments(m, n, warp)]
        parts = np.array([naive.alignment_parts(links, m, n, warp) for links in every])
        theta = [((left[:, None] - right) ** 2 @ weights).ravel()]
        theta += [] if warp else [left @ model.coef_.deleted, right @ model.coef_.inserted]
        values = parts @ np.concatenate([*theta, moves])
        order = np.argsort(-values, kind="stable")
        found = [*map(tuple, best.tolist())] if warp else [(a, b) for a, b in enumerate(best.tolist()) if b >= 0]
        assert np.isclose(values[every.index(found)], values.max())
        assert np.allclose(scores, values[order[:3]])
        assert len(some) == min(3, len(every))
        shares = np.exp(values - np.logaddexp.reduce(values))
        assert np.allclose(means[:, :n], (shares @ parts[:, : m * n]).reshape(m, n))
        log_p = model.log_likelihood([X[i]], [truth[i]])[0]
        if not warp:
            assert np.isclose(log_p, np.log(shares[every.index([])]))


def test_the_objective_is_the_documented_one(rows):
    X, y = (part[:4] for part in rows)
    for warp, truth in ((True, y), (False, [[0] + [-1] * (len(left) - 1) for left, _ in X])):
        model = AlignmentSVM(warp=warp, C=0.5, wrong_cost=0.5, missed_cost=3.0, dtype="float64", random_state=0)
        model.fit(X, truth)
        assert model.trace_.primal[-1] >= model.trace_.dual[-1]
        blocks = []
        for (left, right), known in zip(X, truth, strict=True):
            m, n = len(left), len(right)
            every = [*naive.alignments(m, n, warp)]
            steps = np.cumsum([(move != "I", move != "D") for move in known], axis=0) - 1 if warp else [(0, 0)]
            gold = every.index([*map(tuple, np.array(steps).tolist())])
            parts = np.array([naive.alignment_parts(links, m, n, warp) for links in every])
            links = parts[:, : m * n]
            of_links = links @ ((left[:, None] - right) ** 2).reshape(m * n, -1)
            gaps = [] if warp else [parts[:, m * n : m * n + m] @ left, parts[:, m * n + m : m * n + m + n] @ right]
            features = np.column_stack([of_links, *gaps, parts[:, -9:]])
            wrong, missed = links @ (1 - links[gold]), (1 - links) @ links[gold]
            blocks.append((features[gold] - features, 0.5 * wrong + 3.0 * missed))
        assert np.isclose(naive.primal(model._w, blocks, 0.5), model.trace_.primal[-1])


def test_what_is_known_in_part():
    y = [*OPERATIONS[:4], [None, {0, 1}, None, 2]]
    model = AlignmentCRF(C=10.0).fit(WORDS, y)
    assert model.predict(WORDS)[4].tolist() == [-1, 0, 1, 2]
    assert model.predict([("grey", "gray")], allowed=[[None, None, -1, 3]])[0].tolist()[2:] == [-1, 3]
    both = model.log_likelihood([WORDS[4]], [[None, {0, 1}, None, 2]]), model.log_likelihood([WORDS[4]], ["DMMM"])
    assert both[1] <= both[0] <= 0
    flags = np.eye(3, dtype=bool)
    X, band = [(np.eye(3), np.eye(3)), (np.eye(3), np.eye(3))], [flags, None]
    warped = AlignmentSVM(warp=True, random_state=0).fit(X, ["MMM", flags])
    assert warped.predict(X, allowed=band)[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(ValueError, match=r"allowed\[0\] leaves no output of X\[0\]"):
        warped.predict(X, allowed=[flags[::-1].copy(), None])
    with pytest.raises(ValueError, match=r"y\[4\] leaves no output of X\[4\]"):
        AlignmentCRF().fit(WORDS, [*OPERATIONS[:4], [None, 2, 1, None]])


def test_forms_of_features_are_alike(rows, tmp_path):
    X, y = rows
    pairs = [(left[:, None] - right) ** 2 for left, right in X]
    sparse = [(sp.csr_array(x.reshape(-1, 2)), x.shape[:2]) for x in pairs]
    models = [AlignmentCRF(warp=True).fit(data, y) for data in (X, pairs, sparse)]
    assert all(np.allclose(models[0]._w, model._w, atol=1e-3) for model in models)
    path = tmp_path / "a.model"
    AlignmentCRF().fit(WORDS, OPERATIONS).save(path)
    assert load(path).score(WORDS, OPERATIONS) == 1


STRINGS, ARRAYS = [("ab", "xyz")], [(np.ones((2, 1)), np.ones((3, 1)))]


@pytest.mark.parametrize(
    ("X", "y", "warp", "error", "message"),
    [
        ([], [], False, ValueError, "X must hold at least one pair of sequences, but it is empty"),
        ([*STRINGS, *ARRAYS], [[0, 1]] * 2, False, TypeError, r"X\[1\] must hold two strings, as all others do, but"),
        ([("ab", 3)], [[0, 1]], False, ValueError, r"X\[0\], on the left, must be a \(T, F\) matrix of numbers"),
        ([(np.ones((2, 1)), np.ones((3, 2)))], [[0, 1]], False, ValueError, r"X\[0\] has 1 feature on the left, but 2"),
        (STRINGS * 2, [[0, 1]], False, ValueError, "X has 2 examples, but y has 1"),
        (STRINGS, [[1, 0]], False, ValueError, r"y\[0\] has links that cross: \(0, 1\) and \(1, 0\)"),
        (STRINGS, [[(0, 2), (1, 1)]], False, ValueError, r"y\[0\] has links that cross: \(0, 2\) and \(1, 1\)"),
        (STRINGS, [[0, 3]], False, ValueError, r"y\[0\] links the right node 3, but there are 3"),
        (STRINGS, ["MMX"], False, ValueError, r"y\[0\] must be made of the operations M, D and I, not 'X'"),
        (STRINGS, ["MM"], False, ValueError, r"y\[0\] takes 2 left and 2 right items, but there"),
        (STRINGS, ["DDIII"], True, ValueError, r"y\[0\] must begin with M"),
        (
            STRINGS,
            [[(0, 0), (1, 2)]],
            True,
            ValueError,
            r"y\[0\] has the links \(0, 0\) and \(1, 2\), with items between",
        ),
        (STRINGS, [[(0, 0), (0, 1), (1, 0)]], True, ValueError, r"links \(0, 1\) and \(1, 0\), which cross"),
        (STRINGS, [[(0, 1), (1, 2)]], True, ValueError, r"y\[0\] has the first link \(0, 1\)"),
        (
            STRINGS,
            [[(0, 0), (1, 1)]],
            True,
            ValueError,
            r"y\[0\] must end with the link \(1, 2\), but ends with \(1, 1\)",
        ),
        ([("ab", "")], ["DD"], True, ValueError, r"X\[0\] has nothing on the right: to warp"),
        (STRINGS, [np.ones((2, 2), bool)], True, ValueError, r"y\[0\] must be \(2, 3\) flags of links"),
        (STRINGS, [None], False, ValueError, "y must say something of at least one link"),
    ],
)
def test_bad_input(X, y, warp, error, message):
    with pytest.raises(error, match=message):
        AlignmentSVM(warp=warp).fit(X, y)


def test_bad_data_of_predictions():
    model = AlignmentCRF().fit(ARRAYS, ["MMI"])
    with pytest.raises(ValueError, match=r"X\[0\] has 2 features, but the model was fitted with 1"):
        model.predict([(np.ones((2, 2)), np.ones((2, 2)))])
    with pytest.raises(
        TypeError, match=r"X\[0\] must hold two arrays of rows, as all others do, but holds two strings"
    ):
        model.predict(STRINGS)
