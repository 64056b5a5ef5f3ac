"""`derby demo`: four methods on two tasks on this machine, without key, GPU or network."""

from __future__ import annotations

from pathlib import Path

from ray_cluster.board import how_to_look
from ray_cluster.console import Exit, say
from ray_cluster.listing import CARDS
from ray_cluster.run import run_card

CARD = CARDS / "demo.toml"


def run_demo(runs: Path, fresh: bool) -> Exit:
    """Race the demo card, print its standings, say how to see more."""
    say("derby demo: four methods search on two real kernels; every candidate is built, judged and timed here")
    code = run_card(CARD, runs, fresh, as_json=False)
    if code in (Exit.OK, Exit.FAILED):
        say("\nThe tuner is no language model: it turns the dials that the starter declares. To look closer:")
        for line in how_to_look(runs):
            say(f"  {line}")
    return code
