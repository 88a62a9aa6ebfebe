"""One cluster of two processes for all tests, where Dask is installed."""

import pytest

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")


@pytest.fixture(scope="session")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client
