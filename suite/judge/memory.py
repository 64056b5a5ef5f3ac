"""Traffic the judge makes between timed calls: fresh random contents at memcpy speed, and caches emptied."""

from __future__ import annotations

import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray

from suite.judge.machine import cache_bytes

ALIGNMENT = 64
"""Bytes; copies start on cache lines, so that no source offset is slower than another."""


def fresh_generator() -> np.random.Generator:
    """A generator seeded by the operating system; the seed is kept nowhere."""
    return np.random.default_rng(secrets.randbits(128))


class Pool:
    """Standard normals to copy from, one pool for each floating dtype, made on first use from a secret seed.

    Drawing 8 M normals takes some 80 ms, copying them from a random place of a pool 2 ms.
    """

    def __init__(self, count: int = 1 << 25) -> None:
        self._count = count
        self._pools: dict[torch.dtype, torch.Tensor] = {}

    def fill(self, tensor: torch.Tensor, rng: np.random.Generator) -> None:
        """Overwrite a contiguous floating tensor with normals from a random place of the pool.

        A tensor larger than the pool is filled by stretches, each from a place of its own.
        """
        source = self._pool(tensor.dtype)
        step = ALIGNMENT // tensor.element_size()
        flat = tensor.view(-1)
        for start in range(0, len(flat), len(source) // 2):
            part = flat[start : start + len(source) // 2]
            offset = step * int(rng.integers((len(source) - len(part)) // step + 1))
            part.copy_(source[offset : offset + len(part)])

    def _pool(self, dtype: torch.dtype) -> torch.Tensor:
        if dtype not in self._pools:
            generator = torch.Generator().manual_seed(secrets.randbits(63))
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            self._pools[dtype] = torch.randn(self._count, generator=generator, dtype=wide).to(dtype)
        return self._pools[dtype]


class Flusher:
    """Empties the caches of some cpus: a thread pinned to each reads more memory than all levels hold.

    Reads, not memset: above some size the C library's memset and memcpy go round the caches. And reads leave clean
    lines: dirty ones would have to be written back within the timed call.
    """

    def __init__(self, cpus: tuple[int, ...], size: int | None = None) -> None:
        total = size if size is not None else cache_bytes(cpus)
        share = total // len(cpus) // 8 + 1
        self._buffers: list[NDArray[np.int64]] = [np.full(share, index, dtype=np.int64) for index in range(len(cpus))]
        self._threads = [ThreadPoolExecutor(1, "flush", os.sched_setaffinity, (0, {cpu})) for cpu in cpus]

    def flush(self) -> None:
        """Return when every buffer has been read."""
        reads = [thread.submit(np.max, buffer) for thread, buffer in zip(self._threads, self._buffers, strict=True)]
        for read in reads:
            read.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for thread in self._threads:
            thread.shutdown()
