"""Cards and command lines for tests of the roof."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ray_cluster.main import main
from ray_cluster.race_card import RaceCard

FIXTURE = Path(__file__).parents[1] / "fixtures" / "scaled_add"
"""A task so small that judging it takes a second."""


def card(**changes: object) -> RaceCard:
    """A card on the tuner, two methods, one task, one seed."""
    facts: dict[str, object] = {
        "edition": "test",
        "name": "trial",
        "methods": ["best_of_n", "tpe"],
        "tasks": ["gqa_paged_decode_h32_kv4_d128_ps1"],
        "timing": "tiny",
        "model": {"provider": "tuner", "name": "tuner"},
        "budget": {"evaluations": 2},
    }
    return RaceCard.model_validate({**facts, **changes})


CARD = """
edition = "test"
name = "{name}"
methods = ["best_of_n", "tpe"]
tasks = ["gqa_paged_decode_h32_kv4_d128_ps1"]
timing = "tiny"
seeds = {seeds}
[model]
provider = "tuner"
name = "tuner"
[budget]
evaluations = {evaluations}
"""


def write_card(folder: Path, name: str = "trial", seeds: int = 1, evaluations: int = 2) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(CARD.format(name=name, seeds=seeds, evaluations=evaluations), encoding="utf-8")
    return path


def derby(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command line in this process; returns its exit code."""
    monkeypatch.setattr(sys, "argv", ["derby", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def derby_process(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command line in a process of its own, in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ray_cluster.main", *arguments],
        env={**os.environ, "CI": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
