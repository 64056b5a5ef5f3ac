"""The workbench on the trial's side of the door: meters, asks, judges, records and replays."""

from __future__ import annotations

from pathlib import Path

from suite.types import Candidate, Frozen, Task, TrialSpec, Workload


class TrialOrder(Frozen):
    """All that a trial needs to run. `folder` gets ledger.jsonl, method.log and scratch/ (the method's).

    `heldout` are the workloads drawn for this edition, `heldout_commitment` the SHA-256 (hex) of the seed that drew them.
    """

    spec: TrialSpec
    task: Task
    starter: Candidate
    brief: str
    folder: Path
    heldout: tuple[Workload, ...]
    heldout_commitment: str
