"""Shared ranks: a method stands above another only if a test over seeds says so. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy import stats

MIN_SEEDS = 3
ALPHA = 0.05


def welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of Welch's t test that the log-speedups of `a` and `b` (all > 0, two or more each) have one mean."""
    first, second = np.log(np.asarray(a, dtype=np.float64)), np.log(np.asarray(b, dtype=np.float64))
    gap = float(first.mean() - second.mean())
    parts = [float(logs.var(ddof=1)) / len(logs) for logs in (first, second)]
    error = math.sqrt(sum(parts))
    # Without this, equal seeds of a deterministic method would divide rounding noise by rounding noise.
    if error < 1e-12:
        return 1.0 if abs(gap) < 1e-12 else 0.0
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(logs) - 1) for part, logs in zip(parts, (first, second), strict=True)
    )
    return float(2 * stats.t.sf(abs(gap) / error, freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment, in the order given (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for step, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        running = max(running, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = running
    return adjusted


def shared_ranks(rows: Sequence[Sequence[float]]) -> list[int | None]:
    """Rank of each row of per-seed speedups: 1 + the number of rows shown to be better; ties share a rank.

    Rows of fewer than three seeds are not ranked (None). "Shown to be better": a larger mean and Welch's p, adjusted
    by Holm over all pairs, below 0.05. A row with a failed champion (0) has the score 0 by rule and so stands
    below every row without one; no test is asked.
    """
    ranked = [index for index, values in enumerate(rows) if len(values) >= MIN_SEEDS]
    sound = [index for index in ranked if min(rows[index]) > 0]
    pairs = list(combinations(sound, 2))
    p_values = holm([welch(rows[a], rows[b]) for a, b in pairs])
    beaten = {index: len(sound) if index not in sound else 0 for index in ranked}
    for (a, b), p in zip(pairs, p_values, strict=True):
        if p < ALPHA:
            worse = a if np.log(rows[a]).mean() < np.log(rows[b]).mean() else b
            beaten[worse] += 1
    return [beaten[index] + 1 if index in beaten else None for index in range(len(rows))]
