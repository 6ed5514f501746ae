"""Programs that several tests run are built once, whatever the number of workers."""

import pytest

from tests.microbench.harness import emulation


@pytest.fixture(scope="session")
def builds(tmp_path_factory, worker_id):
    """Where they lie."""
    if emulation.gpp() is None:
        pytest.skip("no g++ on this machine")
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "microbench-builds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def microbench(builds):
    return emulation.emulated(builds)


@pytest.fixture(scope="session")
def cublas(builds):
    return emulation.fake_cublas(builds)
