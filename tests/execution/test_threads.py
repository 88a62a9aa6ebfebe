import gc
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from maxmargin.execution.threads import Ranges, aligned, count_threads, idle_threads, split_evenly
from maxmargin.garbage import no_garbage_collection


def test_ranges_cover_all_examples_once():
    sizes = np.array([5, 1, 1, 1, 5, 1])
    for n_ranges in range(1, 7):
        ranges = split_evenly(sizes, n_ranges)
        assert len(ranges) == n_ranges
        assert [i for lo, hi in ranges for i in range(lo, hi)] == list(range(6))


def test_ranges_are_balanced():
    (lo, hi), _ = split_evenly(np.ones(100), 2)
    assert (lo, hi) in {(0, 49), (0, 50)}


def test_results_come_in_order():
    for n_threads in (1, 2, 3):
        ranges = Ranges(np.ones(9), n_threads)
        assert ranges.run(lambda k, lo, hi: (k, lo, hi)) == [(k, *bounds) for k, bounds in enumerate(ranges.bounds)]
    assert len(Ranges(np.ones(2), 5)) == 2


def test_threads_wait_until_they_are_ended():
    def work(k, lo, hi):
        idle_threads.end()  # but not those at work
        return threading.current_thread()

    for _ in range(2):
        found = Ranges(np.ones(9), 3).run(work)
        assert all(thread.is_alive() for thread in found)
        idle_threads.end()
        assert not any(thread.is_alive() for thread in found)


def test_threads_of_a_run_that_fails_are_not_used_again():
    may_end, failed = threading.Event(), Ranges(np.ones(9), 2)

    def work(k, lo, hi):
        if k:
            may_end.wait()
        raise ValueError("in the first range")

    with pytest.raises(ValueError, match="first range"):
        failed.run(work)
    assert failed.run(lambda k, lo, hi: k) == [0, 1]  # beside the one that waits
    may_end.set()


def test_jobs_count_as_in_scikit_learn():
    cores = os.cpu_count()
    assert [count_threads(jobs) for jobs in (None, 1, 3, -1)] == [1, 1, 3, cores]
    assert count_threads(-1000) == 1


def test_aligned_arrays_start_a_cache_line():
    for shape in [(3,), (2, 5), (1, 1, 7)]:
        array = aligned(shape, np.float32)
        assert array.shape == shape
        assert array.ctypes.data % 64 == 0
        assert not array.any()


def test_libraries_that_are_loaded_later_are_kept_to_one_thread_too():
    program = """
        from threadpoolctl import threadpool_info
        from maxmargin.execution.threads import one_blas_thread
        def threads():
            with one_blas_thread:
                return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        first = threads()
        import scipy.linalg
        both = threads()
        assert set(first + both) == {1}, (first, both)
        assert len(both) >= len(first) > 0
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, env=environment)


def test_overlapping_fits_give_blas_its_threads_back():
    program = """
        from threading import Event, Thread
        import numpy as np
        from threadpoolctl import threadpool_info
        from maxmargin import MulticlassSVM
        def threads():
            return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
        before, is_in, may_leave, seen = threads(), [Event(), Event()], [Event(), Event()], []
        def fit(k):
            def wait(trace):
                is_in[k].set()
                may_leave[k].wait()
                seen.append(threads())
            rng = np.random.default_rng(k)
            MulticlassSVM(max_passes=1).fit(rng.normal(size=(9, 2)), [0, 1, 2] * 3, callback=wait)
        fits = [Thread(target=fit, args=[k]) for k in range(2)]
        for k in range(2):
            fits[k].start()
            is_in[k].wait()
        for k in range(2):
            may_leave[k].set()
            fits[k].join()
        assert len(seen) >= 2 and set.union(*seen) == {1}, seen
        assert threads() == before != {1}, (threads(), before)
    """
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True, env=environment)


def test_garbage_is_looked_for_again_once_all_have_left():
    assert gc.isenabled()
    with no_garbage_collection:
        with no_garbage_collection:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with no_garbage_collection:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
