"""The judge: one candidate in, one verdict out. Screens, builds, checks, times; it alone holds secrets."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from types import TracebackType
from typing import Self

import torch

from suite import task as tasks
from suite.brief import c_prototype
from suite.errors import InfraError
from suite.judge.build import Builder, BuildFailed
from suite.judge.check import AHEAD, Tally, check, draw_cases, timed_cases
from suite.judge.course import Course, Inputs
from suite.judge.hearing import Hearing
from suite.judge.memory import Flusher, Pool, fresh_generator
from suite.judge.plan import JudgeSettings
from suite.judge.sides import Memory, Program, Rejected, Side, shared_memory, spawn
from suite.judge.timing import Stopwatch, Tools
from suite.judge.zygote import Zygote
from suite.screen import screen
from suite.types import Candidate, Evaluation, Job, Launch, Measurement, Split, Status, Task, Tier, Workload

LOAD_S = 30.0
"""For import or dlopen of a candidate."""
CONTENTS_KEPT = 16
"""Timed workloads whose first contents are kept (up to some 40 MB each); they are refreshed before any use."""


class Judge:
    """Judges one job at a time on its cpus; further callers wait. A context manager.

    `evaluate` raises `InfraError` for a failure of ours and `TaskError` for a task that contradicts itself.
    """

    def __init__(self, settings: JudgeSettings | None = None) -> None:
        self.settings = settings or JudgeSettings()
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._builder = Builder(self.settings.cache)
        self._pool = Pool()
        self._contents: dict[tuple[str, str], Inputs] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:  # undone if a later step fails
            # One thread: idle OpenMP threads of the judge would spin in the candidate's turn.
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            # First of all: nothing writable of the judge's may exist when the zygote starts.
            self._zygote = stack.enter_context(Zygote(self.settings.cpus))
            self._flusher = stack.enter_context(Flusher(self.settings.cpus))
            self._clerk = stack.enter_context(ThreadPoolExecutor(1, "clerk"))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def warm(self, task: Task) -> None:
        """Build the task's baseline, so that the first evaluation does not wait for it."""
        self._expert(task)

    def evaluate(self, job: Job) -> Evaluation:
        """Judge one candidate."""
        asked = time.perf_counter()
        with self._lock:
            hearing = Hearing(job, self.settings, queued_s=time.perf_counter() - asked)
            try:
                self._hear(job, hearing)
            except Rejected as verdict:
                hearing.reject(verdict)
            return hearing.evaluation()

    def _hear(self, job: Job, hearing: Hearing) -> None:
        with hearing.stage("screen"):
            if self.settings.screen and (refused := screen(job.task, job.candidate)):
                hearing.fail(Status.POLICY, refused)
                return
        course, rng = Course(job.task), fresh_generator()
        timed = (*job.task.split(Split.SEARCH), *(job.heldout if job.tier == Tier.CHAMPION else ()))
        spots = timed_cases(course, rng, timed, self.settings.plan(job.tier).spots)
        with hearing.stage("build"):
            # Inputs and truths are made while the compiler runs.
            cases = self._clerk.submit(lambda: [*draw_cases(course, rng), *islice(spots, AHEAD)])
            try:
                program = self._build(job, hearing)
                expert = self._expert(job.task)
            finally:
                drawn = cases.result()
        with shared_memory(job.task.definition, (*job.task.workloads, *timed)) as memory:
            with self._candidate(program, memory, hearing) as side, hearing.stage("check"):
                hearing.add(check(course, side, memory.inputs, chain(drawn, spots)))
            hearing.add(self._time(course, timed, (program, expert, memory), hearing))

    def _build(self, job: Job, hearing: Hearing) -> Program:
        try:
            artifact = self._builder.build(job.candidate, _abi(job.task, job.candidate))
        except BuildFailed as failure:
            hearing.print(failure.log)
            raise Rejected(Status.COMPILE_ERROR, "the compiler refused it; the log says why") from failure
        hearing.print(artifact.log)
        return Program(job.candidate, artifact)

    def _expert(self, task: Task) -> Program:
        candidate = tasks.baseline(task)
        try:
            return Program(candidate, self._builder.build(candidate, _abi(task, candidate)))
        except BuildFailed as failure:
            raise InfraError(f"the baseline of {task.name} does not build: {failure.log}") from failure

    # -------------------------------------------------------------------------------- processes

    @contextmanager
    def _candidate(self, program: Program, memory: Memory, hearing: Hearing) -> Iterator[Side]:
        """The candidate in a fresh process, loaded; gone with all it started when the block is left."""
        with hearing.stage("start"):
            child = spawn(self._zygote, program, memory.inputs, memory.candidate, self.settings.memory_bytes)
            hearing.sandbox = child.sandbox
        try:
            side = Side(child, memory.candidate, trusted=False)
            with hearing.stage("start"):
                side.load(LOAD_S)
            yield side
        finally:
            hearing.print(child.kill())

    @contextmanager
    def _baseline(self, program: Program, memory: Memory, hearing: Hearing) -> Iterator[Side]:
        with hearing.stage("start"):
            child = spawn(self._zygote, program, memory.inputs, memory.baseline, self.settings.memory_bytes)
        try:
            side = Side(child, memory.baseline, trusted=True)
            with hearing.stage("start"):
                side.load(LOAD_S)
            yield side
        finally:
            child.kill()

    # -------------------------------------------------------------------------------- timing

    def _time(
        self, course: Course, timed: tuple[Workload, ...], parties: tuple[Program, Program, Memory], hearing: Hearing
    ) -> tuple[Measurement, ...]:
        """All launches of all timed workloads. Launch i of every workload is the same pair of processes."""
        program, expert, memory = parties
        plan = self.settings.plan(hearing.job.tier)
        tools = Tools(plan, self.settings.cpus, self._pool, self._flusher, fresh_generator())
        tallies = [Tally() for _ in timed]
        launches: list[list[Launch]] = [[] for _ in timed]
        for _ in range(plan.launches):
            with self._baseline(expert, memory, hearing) as rival, self._candidate(program, memory, hearing) as side:
                stopwatch = Stopwatch(course, side, rival, memory, tools)
                for workload, tally, done in zip(timed, tallies, launches, strict=True):
                    with hearing.stage("timing", workload):
                        contents = self._first_contents(course, workload)
                        done.append(stopwatch.time(workload, contents, plan.seconds / plan.launches, tally))
        return tuple(
            Measurement(
                workload=workload,
                status=Status.PASSED,
                correctness=tally.correctness(),
                launches=tuple(done),
                bytes_moved=course.cost(workload).bytes_moved,
                flops=course.cost(workload).flops,
            )
            for workload, tally, done in zip(timed, tallies, launches, strict=True)
        )

    def _first_contents(self, course: Course, workload: Workload) -> Inputs:
        key = (course.task.digest, workload.uuid)
        if key not in self._contents:
            while len(self._contents) >= CONTENTS_KEPT:
                del self._contents[next(iter(self._contents))]
            self._contents[key] = course.make(workload, fresh_generator(), course.families[0])
        return self._contents[key]


def _abi(task: Task, candidate: Candidate) -> str:
    """The declaration a C++ kernel is compiled after: another prototype would read its arguments from wrong places."""
    symbol = candidate.spec.entry_point.partition("::")[2]
    return f"#include <cstdint>\n{c_prototype(task.definition, symbol)}\n"
