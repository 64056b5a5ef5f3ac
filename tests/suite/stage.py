"""A small task and trial orders for it, to try the referee on with the scripted stand-ins."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from suite.bench import TrialOrder
from suite.scripted import DEVICE
from suite.types import (
    TIMING_PROTOCOL,
    Axis,
    Baseline,
    Budget,
    Candidate,
    Definition,
    DType,
    HeldoutPlan,
    Language,
    MethodSpec,
    ModelSpec,
    Price,
    SourceFile,
    Spec,
    Split,
    StarterKind,
    Task,
    TensorSpec,
    TrialSpec,
    Workload,
)

PROBES = "tests.suite.probes"


def workload(uuid: str, split: Split, n: int) -> Workload:
    return Workload(uuid=uuid, split=split, axes={"n": n}, params={"n": n})


def task() -> Task:
    vector = TensorSpec(shape=("n",), dtype=DType.FLOAT32)
    return Task(
        definition=Definition(
            name="double",
            op_type="elementwise",
            axes={"n": Axis(type="var")},
            inputs={"x": vector},
            outputs={"y": vector},
            reference="def run(x):\n    return 2 * x\n",
        ),
        title="Twice a vector",
        lane="cpu",
        languages=(Language.CPP,),
        workloads=(
            workload("small", Split.SEARCH, 1000),
            workload("large", Split.SEARCH, 100_000),
            workload("hidden-edge", Split.CHECK, 0),
        ),
        heldout=HeldoutPlan(count=1, draws={"n": {"uniform_int": [10, 20]}}),
        tolerance={},
        baseline=Baseline(name="loop", version=1, language=Language.CPP, files=("baseline.cpp",), entry_point="b::run"),
        starters={"plain": ("starter.cpp",)},
        hints="",
        timeout_s=10.0,
        folder="tasks/double",
        digest="d" * 64,
        origin="made for tests",
        licence="Apache-2.0",
    )


HELDOUT = (workload("held", Split.HELDOUT, 12),)


def candidate(text: str, language: Language = Language.CPP) -> Candidate:
    return Candidate(
        spec=Spec(language=language, entry_point="kernel.cpp::run"),
        sources=(SourceFile(path="kernel.cpp", content=text),),
    )


STARTER = candidate("// scripted: 1.0")


def order(
    folder: Path,
    method: str = "Walker",
    budget: Budget | None = None,
    concurrency: int = 1,
    price: Price | None = None,
    **options: JsonValue,
) -> TrialOrder:
    """A trial of one of the methods in probes.py."""
    spec = TrialSpec(
        edition="test",
        race="test",
        method=MethodSpec(name=method.lower(), target=f"{PROBES}:{method}", options=options, uses_model=False),
        task="double",
        task_digest="d" * 64,
        brief_digest="b" * 64,
        lane="cpu",
        device=DEVICE,
        language=Language.CPP,
        starter=StarterKind.PLAIN,
        model=ModelSpec(provider="tuner", name="canned", max_output_tokens=1000, price=price),
        concurrency=concurrency,
        seed=1,
        budget=budget or Budget(evaluations=6),
        timing_protocol=TIMING_PROTOCOL,
        toolchain={},
    )
    return TrialOrder(
        spec=spec,
        task=task(),
        starter=STARTER,
        brief="Double every element.",
        folder=folder,
        heldout=HELDOUT,
        heldout_commitment="c" * 64,
    )
