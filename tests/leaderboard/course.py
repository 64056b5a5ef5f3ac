"""A made-up race over two tasks by four methods, for the matrix, the curves and the forecasts."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from suite.types import Prediction, Status
from tests.leaderboard.canned import LLM, TASK, Plan, Speed

SECOND = "moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048"


def course(seeds: int = 5, usd: float | None = 0.031) -> Sequence[Plan]:
    """Two tasks, four methods, some seeds, one model: made-up numbers for the matrix. avo skips a task."""
    reaches = {"best_of_n": (1.05, 0.72), "ksearch": (1.62, 0.91), "openevolve": (1.38, 1.21), "avo": (1.47, 0.88)}
    plans = []
    for place, task in enumerate((TASK, SECOND)):
        for method, reach in reaches.items():
            if place and method == "avo":
                continue
            plans += [_climb(method, seed, reach[place], task, usd) for seed in range(1, seeds + 1)]
    return plans


def _climb(method: str, seed: int, reach: float, task: str, usd: float | None) -> Plan:
    rng = random.Random(f"{method} {seed} {task}")
    count = {"best_of_n": 16, "ksearch": 16, "openevolve": 14, "avo": 9}[method]
    speeds: list[Speed] = [0.41]
    predicted: list[Prediction | None] = []
    for number in range(1, count + 1):
        gain = 0.41 + (reach - 0.41) * (1 - math.exp(-number / 5)) * rng.uniform(0.6, 1.05)
        failed = rng.random() < 0.2
        speeds.append(rng.choice([Status.COMPILE_ERROR, Status.INCORRECT_NUMERICAL]) if failed else gain)
        guess = Prediction(speedup=gain * math.exp(rng.gauss(0.2, 0.25)), value=rng.uniform(0.2, 1.0))
        predicted.append(guess if method == "ksearch" else None)
    champion = reach * rng.uniform(0.88, 0.98)
    return Plan(method, seed, tuple(speeds), champion, LLM, "course", task=task, usd=usd, predicted=tuple(predicted))
