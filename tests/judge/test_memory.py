"""Fresh contents come from a secret pool; flushing reads more than the caches hold, on every cpu."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import torch

from suite.judge.memory import Flusher, Pool, fresh_generator


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool(1 << 16)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_a_filled_tensor_holds_standard_normals(pool: Pool, dtype: torch.dtype) -> None:
    tensor = torch.full((100, 300), 7.0, dtype=dtype)
    pool.fill(tensor, fresh_generator())
    assert abs(float(tensor.double().mean())) < 0.05
    assert abs(float(tensor.double().std()) - 1) < 0.05


def test_two_fills_differ(pool: Pool) -> None:
    first, second = torch.empty(1000), torch.empty(1000)
    rng = fresh_generator()
    pool.fill(first, rng)
    pool.fill(second, rng)
    assert not torch.equal(first, second)


def test_two_pools_differ() -> None:
    tensors = [torch.empty(4096), torch.empty(4096)]
    for tensor in tensors:
        Pool(4096).fill(tensor, np.random.default_rng(0))
    assert not torch.equal(*tensors)


@pytest.mark.parametrize("count", [0, 1, (1 << 16) - 1, 1 << 16, 200_001])
def test_tensors_of_any_size_are_filled_whole(pool: Pool, count: int) -> None:
    tensor = torch.full((count,), torch.nan)
    pool.fill(tensor, fresh_generator())
    assert not bool(torch.isnan(tensor).any())


def test_a_fill_writes_in_place(pool: Pool) -> None:
    tensor = torch.empty(64)
    address = tensor.data_ptr()
    pool.fill(tensor, fresh_generator())
    assert tensor.data_ptr() == address


def test_generators_share_nothing() -> None:
    assert fresh_generator().integers(1 << 60) != fresh_generator().integers(1 << 60)


def test_a_flusher_reads_on_each_of_its_cpus_and_leaves_no_thread() -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    before, own = threading.active_count(), os.sched_getaffinity(0)
    with Flusher(cpus, size=1 << 20) as flusher:
        flusher.flush()
        assert threading.active_count() == before + len(cpus)
        assert os.sched_getaffinity(0) == own
    assert threading.active_count() == before
