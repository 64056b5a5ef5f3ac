"""Made-up races for the board's tests: real events in real ledgers, no judge and no method."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from suite.events import (
    ChampionMeasured,
    Evaluated,
    Event,
    Message,
    MethodEnded,
    ModelCalled,
    ModelRequested,
    TrialFinished,
    TrialStarted,
)
from suite.ledger import Ledger
from suite.types import (
    Budget,
    Candidate,
    Correctness,
    Evaluation,
    Failure,
    Language,
    Launch,
    Measurement,
    MethodSpec,
    ModelSpec,
    Prediction,
    SourceFile,
    Spec,
    Spent,
    Split,
    StarterKind,
    Status,
    Tier,
    TrialSpec,
    Usage,
    Workload,
)

TASK = "gqa_paged_decode_h32_kv4_d128_ps1"
DEVICE = "AMD EPYC 9B45, 2 cores"
TUNER = ModelSpec(provider="tuner", name="tuner")
LLM = ModelSpec(provider="openai", name="large-1", effort="high")
USAGE = Usage(input=2400, output=900, cached=1200, reasoning=300)
"""Of every model call."""
SEARCH = tuple(Workload(uuid=f"search-{n}", split=Split.SEARCH, axes={"batch_size": n}) for n in (1, 4, 8))
HELDOUT = tuple(Workload(uuid=f"heldout-{n}", split=Split.HELDOUT, axes={"batch_size": n}) for n in (2, 3, 7))

Speed = float | Status
"""What a canned candidate comes to: its speedup, or how it failed."""


@dataclass(frozen=True)
class Plan:
    """A trial to be told: `speeds[0]` is the starter's, `champion` the held-out one (None: as in the search)."""

    method: str = "best_of_n"
    seed: int = 1
    speeds: tuple[Speed, ...] = (0.4, Status.COMPILE_ERROR, 0.7, 1.3, Status.INCORRECT_NUMERICAL, 1.1)
    champion: Speed | None = None
    model: ModelSpec | None = TUNER
    race: str = "demo"
    edition: str = "dev"
    finished: bool = True
    busy: bool = False
    noise: float = 0.01
    options: dict[str, JsonValue] = field(default_factory=dict)
    launches: int = 3
    task: str = TASK
    task_digest: str = "a" * 64
    usd: float | None = None
    """Price of a model call; None: unknown, as it is for a model without one."""
    predicted: Sequence[Prediction | None] = ()
    """What the method expected of candidate 1, 2, …"""
    helper: bool = False
    """Every candidate has a second file."""


def trial_spec(plan: Plan) -> TrialSpec:
    return TrialSpec(
        edition=plan.edition,
        race=plan.race,
        method=MethodSpec(name=plan.method, target=f"methods.{plan.method}:Method", options=plan.options),
        task=plan.task,
        task_digest=plan.task_digest,
        brief_digest="b" * 64,
        lane="cpu",
        device=DEVICE,
        language=Language.CPP,
        starter=StarterKind.PLAIN,
        model=plan.model,
        concurrency=1,
        seed=plan.seed,
        budget=Budget(evaluations=16),
        timing_protocol="cpu-1",
        toolchain={"g++": "12.2.0"},
    )


def candidate(number: int, helper: bool = False) -> Candidate:
    source = f"""// candidate {number}
#include <cstdint>
constexpr int kHeadsPerPass = {2**number % 17};  // tune: heads_per_pass in {{1, 2, 4, 8, 16}}

extern "C" int run(const uint16_t* q, float* out, int64_t batch_size) {{
    for (int64_t row = 0; row < batch_size; ++row) out[row] = q[row] * kHeadsPerPass;
    return 0;
}}
"""
    spec = Spec(language=Language.CPP, entry_point="kernel.cpp::run", binding="c")
    second = SourceFile(path="helper.h", content=f"#pragma once\nconstexpr int kLanes = {4 + number % 2};\n")
    return Candidate(spec=spec, sources=(SourceFile(path="kernel.cpp", content=source), *([second] if helper else [])))


def measurement(workload: Workload, speed: Speed, plan: Plan, launches: int, rng: random.Random) -> Measurement:
    """Timed samples that make the speed, up to `plan.noise`; none if it failed."""
    if isinstance(speed, Status):
        return Measurement(workload=workload, status=speed, detail="row 3 of out: 0.0 instead of 0.71")
    base = 2000.0 * workload.axes["batch_size"]
    wobble = [math.exp(rng.gauss(0, plan.noise)) for _ in range(launches)]
    return Measurement(
        workload=workload,
        status=Status.PASSED,
        correctness=Correctness(max_absolute_error=2e-3, max_relative_error=4e-3, compared=40, referenced=2),
        launches=tuple(
            Launch(
                candidate_us=tuple(base / speed * factor * math.exp(rng.gauss(0, plan.noise)) for _ in range(12)),
                baseline_us=tuple(base * math.exp(rng.gauss(0, plan.noise)) for _ in range(12)),
                overhead_us=48.0,
                foreign_cpu=0.3 if plan.busy else 0.01,
                seconds=0.1,
            )
            for factor in wobble
        ),
        bytes_moved=int(base * 20_000),
        flops=int(base * 60_000),
    )


def evaluation(plan: Plan, source: Candidate, speed: Speed, tier: Tier = Tier.SEARCH) -> Evaluation:
    """A verdict; a status instead of a speed fails the build, or the last workload where it has been built."""
    rng = random.Random(f"{source.id} {plan.seed} {tier}")
    workloads = SEARCH if tier is Tier.SEARCH else SEARCH + HELDOUT
    failed = isinstance(speed, Status)
    built = speed != Status.COMPILE_ERROR
    speeds: list[Speed] = [1.0 if failed else speed] * (len(workloads) - 1) + [speed]
    count = 1 if tier is Tier.SEARCH else plan.launches
    pairs = zip(workloads, speeds, strict=True)
    return Evaluation(
        candidate=source.id,
        definition=plan.task,
        task_digest=plan.task_digest,
        tier=tier,
        lane="cpu",
        device=DEVICE,
        timing_protocol="cpu-1",
        status=speed if isinstance(speed, Status) else Status.PASSED,
        failure=_failure(speed) if isinstance(speed, Status) else None,
        measurements=tuple(measurement(work, each, plan, count, rng) for work, each in pairs) if built else (),
        log="" if built else "kernel.cpp:6:5: error: 'foo' was not declared in this scope",
        sandbox={"namespaces": "user net pid mnt ipc", "landlock": "abi 3", "seccomp": "on", "cgroup": "not writable"},
        stages_s={"build": 0.2, "start": 0.04, "check": 0.5, "timing": 1.2},
        busy=plan.busy,
    )


def _failure(status: Status) -> Failure:
    if status is Status.COMPILE_ERROR:
        return Failure(stage="build", detail="kernel.cpp:6:5: 'foo' was not declared in this scope")
    return Failure(stage="check", detail="out: 12 of 4096 elements outside the tolerance", workload="check")


def events(plan: Plan) -> list[Event]:
    """The whole ledger of a trial, in order."""
    trial = trial_spec(plan)
    made: list[Event] = [
        TrialStarted(
            trial=trial,
            starter=candidate(0, plan.helper),
            environment={"cpu": DEVICE, "kernel": "6.1", "g++": "12.2.0", "torch": "2.13.0", "git": "0123abc"},
            heldout_commitment="c" * 64,
        )
    ]
    spent = Spent()
    for number, speed in enumerate(plan.speeds):
        if number:
            spent = spent.model_copy(update={"evaluations": number, "wall_s": 6.5 * number})
        if number and plan.model is not None:
            spent = _charged(spent, plan)
            made += _call(number, spent, plan)
        made.append(_evaluated(plan, number, speed, spent))
    return made + (_ending(plan, spent) if plan.finished else [])


def price(plan: Plan) -> float | None:
    """Of one call: stand-ins are free, a model costs what the plan says."""
    return plan.usd if plan.model is not None and plan.model.is_llm else 0.0


def _charged(spent: Spent, plan: Plan) -> Spent:
    usage, usd = spent.usage + USAGE, price(plan)
    total = None if usd is None or spent.usd is None else spent.usd + usd
    return spent.model_copy(update={"calls": spent.calls + 1, "usage": usage, "usd": total})


def _call(number: int, spent: Spent, plan: Plan) -> list[Event]:
    request = f"{number:064x}"
    messages = (Message(role="system", content="You write kernels."), Message(role="user", content="Faster, please."))
    return [
        ModelRequested(call=number, request=request, reserved_tokens=9000),
        ModelCalled(
            call=number,
            request=request,
            messages=messages,
            reply=f"```cpp\n{candidate(number).text()}```",
            usage=USAGE,
            usd=price(plan),
            seconds=1.5,
            spent=spent,
        ),
    ]


def _evaluated(plan: Plan, number: int, speed: Speed, spent: Spent) -> Evaluated:
    source = candidate(number, plan.helper)
    return Evaluated(
        number=number,
        candidate=source,
        parent=candidate(0, plan.helper).id if number else None,
        note="" if number else "starter",
        evaluation=evaluation(plan, source, speed),
        predicted=plan.predicted[number - 1] if 0 < number <= len(plan.predicted) else None,
        spent=spent,
    )


def _ending(plan: Plan, spent: Spent) -> list[Event]:
    ended = MethodEnded(reason="the budget of evaluations is spent", exit_code=0)
    timed = [(speed, -number) for number, speed in enumerate(plan.speeds) if not isinstance(speed, Status)]
    if not timed:
        return [ended, TrialFinished(reason="nothing passed", champion=None, spent=spent)]
    best, number = max(timed)
    champion = candidate(-number, plan.helper)
    verdict = evaluation(plan, champion, best if plan.champion is None else plan.champion, Tier.CHAMPION)
    return [
        ended,
        ChampionMeasured(candidate=champion.id, heldout=HELDOUT, evaluation=verdict),
        TrialFinished(reason="the budget of evaluations is spent", champion=champion.id, spent=spent),
    ]


def write(runs: Path, plan: Plan) -> Path:
    """Puts a trial's ledger where a race would; its path."""
    path = runs / plan.race / "trials" / trial_spec(plan).id / "ledger.jsonl"
    path.parent.mkdir(parents=True)
    with Ledger.open(path) as ledger:
        for event in events(plan):
            ledger.append(event)
    return path


def demo(seeds: int = 5) -> Sequence[Plan]:
    """Two methods over some seeds, one failed champion and one trial still running: something of everything."""
    plans = []
    for seed in range(1, seeds + 1):
        rng = random.Random(seed)
        for method, reach, model in (("best_of_n", 1.25, TUNER), ("tpe", 1.42, None)):
            speeds: list[Speed] = [0.41]
            for number in range(1, 17):
                failed = rng.random() < 0.18
                gain = 0.41 + (reach - 0.41) * (1 - math.exp(-number / 5)) * rng.uniform(0.6, 1.0)
                speeds.append(rng.choice([Status.COMPILE_ERROR, Status.INCORRECT_NUMERICAL]) if failed else gain)
            plans.append(Plan(method, seed, tuple(speeds), champion=reach * rng.uniform(0.85, 0.95), model=model))
    return plans
