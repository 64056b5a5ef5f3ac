"""Which cores a judge owns on this machine. Knows nothing of Ray, so that a dry run need not load it."""

from __future__ import annotations

import os


def cores_here(judges: int | None) -> tuple[tuple[int, ...], ...]:
    """The cores of each judge among those this process may use."""
    return cores_for(judges, tuple(sorted(os.sched_getaffinity(0))))


def cores_for(judges: int | None, cores: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Two cores for each judge (the only core, where there is one). `judges`: None for as many as there are pairs."""
    pairs = [cores[index : index + 2] for index in range(0, len(cores) - 1, 2)] or [cores]
    return tuple(pairs if judges is None else pairs[:judges])
