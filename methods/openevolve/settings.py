"""What OpenEvolve is told: its configuration by preset, and the folder its processes find everything in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suite.client import TOKEN
from suite.types import Language
from suite.workbench import EditFormat, Workbench

if TYPE_CHECKING:
    from methods.openevolve import OpenEvolve

WITHOUT_END = 10**9
"""Iterations: more than any budget pays for."""

MONTH_S = 30 * 24 * 3600
"""A timeout that never comes: gateway and judge have theirs, and waiting for a quota is no failure."""

FENCES = {Language.CPP: "cpp", Language.CUDA: "cuda", Language.PYTHON: "python", Language.TRITON: "python"}

PRESETS: dict[str, dict[str, Any]] = {
    "core": {"edits": "search_replace", "prompt": {}, "database": {}},
    "k_search_paper": {
        "edits": "whole",
        "prompt": {"num_top_programs": 3, "num_diverse_programs": 2},
        "database": {
            "population_size": 25,
            "archive_size": 12,
            "num_islands": 3,
            "elite_selection_ratio": 0.3,
            "exploitation_ratio": 0.65,
            "exploration_ratio": 0.35,
        },
    },
}


@dataclass(frozen=True)
class Home:
    """The folder of one start of the method, and what lies in it."""

    folder: Path

    @property
    def order(self) -> Path:
        """What the runner is told, as JSON: config, seed, starter (a path), give_up_after."""
        return self.folder / "order.json"

    @property
    def refusal(self) -> Path:
        """Written by a worker that the gateway refused: the run is over."""
        return self.folder / "refusal.txt"

    @property
    def temporary(self) -> Path:
        return self.folder / "tmp"

    def attempt(self, number: int) -> Path:
        """OpenEvolve's output: a new folder each time, since it would take old programs there for its own."""
        return self.folder / f"attempt_{number}"


def lay_out(method: OpenEvolve, bench: Workbench) -> Home:
    """Write what the runner needs into the method's folder."""
    home = Home(bench.folder / "openevolve")
    home.temporary.mkdir(parents=True)
    entry = Path(bench.starter.spec.entry_point.split("::")[0])
    starter = home.folder / f"starter{entry.suffix}"
    starter.write_bytes(bench.starter.text().encode())
    order = {
        "config": config(method, bench),
        "seed": bench.seed,
        "starter": str(starter),
        "give_up_after": method.give_up_after,
    }
    home.order.write_text(json.dumps(order, indent=1), encoding="utf-8")
    return home


def edit_format(method: OpenEvolve) -> EditFormat:
    """How the model is to answer."""
    edits: EditFormat = method.edits or PRESETS[method.preset]["edits"]
    return edits


def config(method: OpenEvolve, bench: Workbench) -> dict[str, Any]:
    """What `openevolve.config.Config.from_dict` is given; where the gateway is, the runner adds."""
    preset = PRESETS[method.preset]
    sizes = {"num_islands": method.islands, "population_size": method.population}
    return {
        "max_iterations": WITHOUT_END,
        "checkpoint_interval": 1,
        "log_level": "WARNING",
        "random_seed": bench.seed % 2**32,
        "language": FENCES[bench.language],
        "diff_based_evolution": edit_format(method) == "search_replace",
        "max_code_length": method.max_code_length,
        # The name decides which parameters the package sends; none of them is heeded.
        "llm": {"api_key": f"${{{TOKEN}}}", "models": [{"name": "derby"}], "timeout": MONTH_S, "retries": 0},
        "prompt": {
            "system_message": bench.brief,
            "artifact_security_filter": False,
            "suggest_simplification_after_chars": None,
            **preset["prompt"],
        },
        "database": {
            "log_prompts": False,
            "max_snapshot_artifacts": None,
            "artifacts_base_path": str(bench.folder / "openevolve" / "artifacts"),
            **preset["database"],
            **{name: size for name, size in sizes.items() if size is not None},
        },
        "evaluator": {
            "timeout": MONTH_S,
            "max_retries": 0,
            "cascade_evaluation": False,
            "parallel_evaluations": bench.concurrency,
        },
        "evolution_trace": {
            "enabled": True,
            "include_code": True,
            "include_prompts": False,
            "include_failures": True,
            "buffer_size": 1,
        },
    }
