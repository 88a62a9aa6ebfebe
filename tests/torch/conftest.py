import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Small products on one thread: others would only wait for each other."""
    pytest.importorskip("torch", reason='needs PyTorch: pip install "maxmargin[torch]"').set_num_threads(1)
