import numpy as np
import pytest

from maxmargin.features import BinaryFeatures, DenseFeatures, SparseFeatures
from maxmargin.testing import check_structure
from tests.toy import STORAGES, random_chains


@pytest.mark.long
@pytest.mark.parametrize(("storage", "dtype"), STORAGES)
def test_long_and_short_sequences_measure_directions_alike(storage, dtype):
    """Short sequences have a Gram matrix; in the long one forming X' D is cheaper."""
    problem = random_chains(np.random.default_rng(0), [40, 2, 5], 3, storage, dtype)
    has_gram = problem.features.gram.at >= 0
    assert not has_gram[0]
    assert has_gram[1]
    check_structure(problem, k=2)


def test_storage_follows_the_data():
    rng = np.random.default_rng(0)
    kinds = {storage: random_chains(rng, [3, 4], 2, storage).features for storage, _ in STORAGES}
    assert isinstance(kinds["dense"], DenseFeatures)
    assert isinstance(kinds["sparse"], SparseFeatures)
    assert isinstance(kinds["binary"], BinaryFeatures)
