"""A first look at judging a kernel on a GPU: ROUGH, a script to learn from, to be replaced by the sm90 lane's judge.

    python -m tests.gpu.first_look RESULT.txt [RAW.json]     measure
    python -m tests.gpu.first_look --tables RAW.json         the tables again, from the raw samples

Two processes on one GPU exchange calls (first_look_judge.py says how). Checks ragged workloads and controls, then
times large ones: the judge's clock, less that of a trusted worker's empty calls, is the score; the worker's events and
CUPTI are claims beside it. Needs torch, Triton, cuda-bindings, nvidia-ml-py and an otherwise idle NVIDIA GPU; changes
none of its settings.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import pynvml  # type: ignore[import-not-found, unused-ignore]
import torch

from tests.gpu.first_look_judge import CALLS, LSE_LIMIT, NORM_LIMIT, Block, Contents, Judge, Worker, WorkerFailed

HERE = Path(__file__).parent
STARTER = HERE.parents[1] / "tasks" / "gqa_paged_decode_h32_kv4_d128_ps1" / "starter_triton.py"
WORKERS = 8
TIMED = {"1x4096": [4096], "16x4096": [4096] * 16, "64x1024": [1024] * 64}
RAGGED = {"tiny": [0, 1, 2, 63, 64, 65, 0, 513, 200], "one": [1], "none": [0], "mixed": [1, 4096, 0, 777, 17]}
HANG = """calls = []


def run(q, *args):
    calls.append(0)
    while len(calls) > 5:
        pass
    attend(q, *args)


def attend("""
CONTROLS = {  # name: (text to replace in the starter, its replacement)
    "drops a token": ("+ request + 1) - begin\n", "+ request + 1) - begin - 1\n"),
    "writes an input": ("    batch = q.shape[0]\n", "    batch = q.shape[0]\n    k_cache.zero_()\n"),
    "hangs": ("def run(", HANG),
}
EMPTY, EMPTY_EVENTS = "1 bare", "0 events"
"""What is subtracted. Without a kernel or an event the GPU never switches to the worker's context: 6 us, not 149."""
JUDGE_CORE, TRUSTED_CORE, WORKER_CORE = 2, 4, 6


def spread(values: list[float]) -> float:
    """Half of the distance between the 16th and the 84th percentile."""
    ordered = sorted(values)
    return (ordered[int(0.84 * len(ordered))] - ordered[int(0.16 * len(ordered))]) / 2


def card() -> str:
    """Clocks, temperature, power and throttle reasons as NVML reports them now."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    clocks = [pynvml.nvmlDeviceGetClockInfo(handle, kind) for kind in (pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM)]
    watts = pynvml.nvmlDeviceGetPowerUsage(handle) / 1000
    degrees = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return f"SM {clocks[0]} MHz, memory {clocks[1]} MHz, {degrees} C, {watts:.0f} W, throttle reasons {reasons:#x}"


def start_zygote(scratch: Path) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A process that has imported torch and Triton and has not touched CUDA; it inherits none of the judge's maps."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "TRITON_CACHE_DIR": str(scratch / "triton"),
    }
    environment |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CUDA_HOME") if name in os.environ}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-I", str(HERE / "first_look_worker.py"), str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment)
    theirs.close()
    return process, ours


class Look:
    """The judge, its zygote, the trusted worker and the report."""

    def __init__(self, zygote: socket.socket, report: Path, scratch: Path) -> None:
        begin = time.perf_counter()
        self.file, self.scratch, self.zygote = report.open("w"), scratch, zygote
        self.raw: list[dict[str, Any]] = []
        pynvml.nvmlInit()
        self.judge = Judge(JUDGE_CORE)
        ready = time.perf_counter() - begin
        threads = struct.unpack("<i", zygote.recv(4))[0]
        zygote_ready = time.perf_counter() - begin
        self.trusted = Worker(zygote, TRUSTED_CORE, None)
        driver = pynvml.nvmlSystemGetDriverVersion()
        self.say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, driver {driver}; {card()}")
        self.say(f"start: judge {ready:.1f} s, zygote {zygote_ready:.1f} s with {threads} thread")
        self.say(f"trusted worker, ms: {self.parts(self.trusted)}")

    def say(self, line: str) -> None:
        self.file.write(line + "\n")
        self.file.flush()
        print(line, flush=True)  # noqa: T201

    @staticmethod
    def parts(worker: Worker) -> str:
        return " ".join(
            f"{n} {v:.0f}"
            for n, v in zip(("fork", "context", "pages", "import", "total"), worker.start_ms, strict=True)
        )

    def spawn(self, contents: Contents, candidate: Path = STARTER) -> tuple[Worker, list[float]]:
        """A fresh worker with the workload mapped and its warm call made; milliseconds of mapping and of that call."""
        worker = Worker(self.zygote, WORKER_CORE, candidate)
        contents.refresh(0, self.judge.stream)
        self.judge.torch_stream.synchronize()
        try:
            return worker, [1e3 * s for s in worker.map(contents)[1]]
        except WorkerFailed:
            worker.close()
            raise

    def ragged(self) -> None:
        for name, lengths in RAGGED.items():
            contents = Contents(lengths, self.judge.pool, 1)
            worker, times = self.spawn(contents)
            self.judge.block(worker, contents, calls=8)
            norm, worst, lse, wrong = self.judge.verify(worker, contents, calls=8)
            self.say(f"ragged {name:6}: output norm {norm:.1e}, element {worst:.1e}, lse {lse:.1e}; wrong {wrong}/8")
            pair = zip(contents.reference(), contents.reference(torch.float64), strict=True)
            exact = [float((x.double() - y)[torch.isfinite(y)].abs().max()) for x, y in pair] if any(lengths) else []
            self.say(f"  the reference itself against float64, greatest difference: {exact}")
            self.say(f"  start, ms: {self.parts(worker)} map {times[0]:.1f} first call {times[1]:.0f}")
            worker.close()
            contents.close()

    def controls(self) -> None:
        """Candidates that must fail, and a worker that tries to write the flag."""
        for name, (old, new) in CONTROLS.items():
            source = STARTER.read_text()
            assert old in source
            path = self.scratch / f"{name.replace(' ', '_')}.py"
            path.write_text(source.replace(old, new))
            contents = Contents([1024] * 4, self.judge.pool, 2)
            contents.refresh(0, self.judge.stream)
            before = contents.tensors["k_cache"].clone()
            begin = time.perf_counter()
            ending = self.judged(contents, path)
            contents.refresh(0, self.judge.stream)
            self.judge.torch_stream.synchronize()
            self.say(f"control {name!r}: {ending} ({time.perf_counter() - begin:.2f} s)")
            state = "well" if torch.equal(before, contents.tensors["k_cache"]) else "WRONG"
            self.say(f"  judge's context afterwards: {state}")
            contents.close()

    def judged(self, contents: Contents, candidate: Path) -> str:
        """How a candidate ends, in words."""
        try:
            worker, _ = self.spawn(contents, candidate)
        except WorkerFailed as failure:
            return f"at its warm call: {failure}".split("\n")[0]
        try:
            self.judge.block(worker, contents, calls=8)
            return f"{self.judge.verify(worker, contents, calls=8)[3]}/8 calls wrong"
        except WorkerFailed as failure:
            return str(failure)
        finally:
            gc.enable()
            worker.close()

    def inputs_hold(self) -> None:
        """The input's contents as the judge sees them across a worker's write, without a refresh in between."""
        path = self.scratch / "writes_an_input.py"
        contents = Contents([1024] * 4, self.judge.pool, 3)
        contents.refresh(0, self.judge.stream)
        before = contents.tensors["k_cache"].clone()
        worker = Worker(self.zygote, WORKER_CORE, path)
        try:
            worker.map(contents)
            told = "the write was ALLOWED"
        except WorkerFailed as failure:
            told = str(failure).split("\n")[0]
        self.judge.torch_stream.synchronize()
        same = torch.equal(before, contents.tensors["k_cache"])
        self.say(f"a worker's kernel writes an input: {told}; contents {'unchanged' if same else 'CHANGED'}")
        worker.close()
        worker = Worker(self.zygote, WORKER_CORE, None)
        self.say(f"a worker wants the flag writable: {worker.ask('attack_flag', [worker.flag.fd])[0]}")
        try:
            told = worker.ask("attack_stream_write", [])[0]
        except WorkerFailed as failure:
            told = str(failure).split("\n")[0]
        self.say(f"a worker's stream writes the flag: {told}; flag reads {worker.flag.words[0]}")
        worker.close()
        contents.close()

    def time(self, name: str, lengths: list[int], seed: int) -> None:
        """Fresh workers on one workload; of each: empties, scored and event blocks, one traced, empties again."""
        contents = Contents(lengths, self.judge.pool, seed)
        self.say(f"\n{name}; before: {card()}")
        rows, starts = [], []
        for _ in range(WORKERS):
            worker, times = self.spawn(contents)
            starts.append([*worker.start_ms, *times])
            row = {**self.empties(contents), **self.blocks(worker, contents), "again": self.trusted_block(contents, 0)}
            rows.append(row)
            self.raw.append({"workload": name, **{key: asdict(block) for key, block in row.items()}})
            worker.close()
        for told in tables(rows):
            self.say(told)
        columns = ("fork", "context", "pages", "import", "total", "map", "first call")
        parts = ", ".join(f"{n} {median(start[i] for start in starts):.1f}" for i, n in enumerate(columns))
        self.say(f"  worker start, median ms: {parts}")
        walls = [row["bare"].wall_ms for row in rows]
        late = sum(block.late for row in rows for block in row.values())
        self.say(f"  a block of {CALLS} calls takes {median(walls):.0f} ms; released late {late}; after: {card()}")
        contents.close()

    def trusted_block(self, contents: Contents, nulls: int, how: str = "bare") -> Block:
        return self.judge.block(self.trusted, contents, how, nulls)

    def empties(self, contents: Contents) -> dict[str, Block]:
        """The trusted worker's calls of 0, 1, 2 and 8 null kernels, bare and with events."""
        ways = [(nulls, how) for nulls in (0, 1, 2, 8) for how in ("bare", "events")]
        return {f"{nulls} {how}": self.trusted_block(contents, nulls, how) for nulls, how in ways}

    def blocks(self, worker: Worker, contents: Contents) -> dict[str, Block]:
        """The candidate's blocks, each verified whole."""
        result = {}
        for key in ("bare", "events", "bare 2", "events 2", "bare unheld", "traced"):
            if key == "traced":
                worker.ask("trace", [])
            block = self.judge.block(worker, contents, key.split()[0], hold="unheld" not in key)
            block.norm, block.worst, block.lse, block.wrong = self.judge.verify(worker, contents)
            result[key] = block
        return result


def line(label: str, values: list[float]) -> str:
    return f"    {label:42} {median(values):8.2f} [{min(values):.2f}, {max(values):.2f}]"


def tables(rows: list[dict[str, Block]]) -> list[str]:
    """Lines on one workload: medians over the workers of medians over calls, and what would be rejected."""
    lines = [f"  us: median over {len(rows)} fresh workers [least, greatest] of block medians"]
    for nulls in (0, 1, 2, 8):
        bare, events = f"{nulls} bare", f"{nulls} events"
        lines += [
            line(f"{nulls} null kernels, bare: judge's clock", [median(row[bare].call) for row in rows]),
            line(f"{nulls} null kernels, bare: mark", [median(row[bare].mark) for row in rows]),
            line(f"{nulls} null kernels, events: judge's clock", [median(row[events].call) for row in rows]),
            line(f"{nulls} null kernels, events: events", [median(row[events].claims) for row in rows]),
        ]
    for key in ("bare", "bare 2", "bare unheld"):
        lines += [
            line(f"{key}: SCORE, clock net of 1 null", [net(row, key, EMPTY) for row in rows]),
            line(f"{key}: sd of a call", [spread(row[key].call) for row in rows]),
            line(f"{key}: mark's, less score", [mark(row, key) for row in rows]),
        ]
    for key in ("events", "events 2"):
        lines += [
            line(f"{key}: events", [median(row[key].claims) for row in rows]),
            line(f"{key}: events, net of an empty pair", [claimed(row, key) for row in rows]),
            line(f"{key}: sd of a call by events", [spread(row[key].claims) for row in rows]),
            line(f"{key}: clock, net of an empty pair", [net(row, key, EMPTY_EVENTS) for row in rows]),
            line(f"{key}: difference of the last two", [same_block(row, key) for row in rows]),
        ]
    lines.append(
        line("traced: CUPTI, first start to last end", [median(row["traced"].claims or [0.0]) for row in rows])
    )
    for key in (EMPTY, "bare", "bare unheld"):
        lines.append(line(f"{key}: b - a", [median(row[key].audit) for row in rows]))
        lines.append(line(f"{key}: b - a, greatest less empty's", [excess(row, key) for row in rows]))
    return [*lines, *verdicts(rows)]


def verdicts(rows: list[dict[str, Block]]) -> list[str]:
    """Errors over all calls, and how often each clause would have rejected these honest blocks."""
    checked = [row[key] for row in rows for key in ("bare", "events", "bare 2", "events 2", "bare unheld", "traced")]
    worst = [f"{label} {max(getattr(block, label) for block in checked):.1e}" for label in ("norm", "worst", "lse")]
    wrong = sum(block.wrong for block in checked)
    lines = [f"    errors: {', '.join(worst)}; wrong {wrong} of {len(checked) * CALLS} calls"]
    held, unheld = (("bare", "events"), ("bare 2", "events 2")), (("bare unheld", "events"),)
    for name, pairs in (("held", held), ("unheld", unheld)):
        reasons: Counter[str] = Counter()
        for row in rows:
            for bare, events in pairs:
                reasons.update(rejections(row, bare, events))
        lines.append(f"    {name}: of {len(rows) * len(pairs)} pairs of blocks, rejected by")
        lines += [f"      {reason:60} {count}" for reason, count in reasons.items()]
    return lines


def net(row: dict[str, Block], key: str, empty: str, what: str = "call") -> float:
    return float(median(getattr(row[key], what)) - median(getattr(row[empty], what)))


def mark(row: dict[str, Block], key: str) -> float:
    return net(row, key, EMPTY, "mark") - net(row, key, EMPTY)


def claimed(row: dict[str, Block], key: str) -> float:
    return median(row[key].claims) - median(row[EMPTY_EVENTS].claims)


def same_block(row: dict[str, Block], key: str) -> float:
    """Events less the judge's clock, both of one block and both net of an empty pair of events."""
    return claimed(row, key) - net(row, key, EMPTY_EVENTS)


def excess(row: dict[str, Block], key: str) -> float:
    return max(row[key].audit) - median(row[EMPTY].audit)


def rejections(row: dict[str, Block], bare: str, events: str) -> dict[str, int]:
    """Which clauses of the proposed rule, and of variants of it, would reject this honest pair of blocks."""
    score = net(row, bare, EMPTY)
    allowed = max(1.0, 0.015 * score)
    return {
        "events against score": abs(median(row[events].claims) - score) > allowed,
        "events net of an empty pair against score": abs(claimed(row, events) - score) > allowed,
        "events against the clock of their own block": abs(same_block(row, events)) > allowed,
        "mark beyond 0 to 8 us": not 0 <= mark(row, bare) <= 8,
        "b - a beyond 100 us": excess(row, bare) > 100,
        "b - a beyond 10 us": excess(row, bare) > 10,
        "wrong outputs": row[bare].wrong + row[events].wrong > 0,
    }


def again(raw: Path) -> None:
    """Print the tables of a run that kept its samples."""
    kept = [(row.pop("workload"), {k: Block(**v) for k, v in row.items()}) for row in json.loads(raw.read_text())]
    for name in dict.fromkeys(name for name, _ in kept):
        print("\n".join([name, *tables([row for other, row in kept if other == name])]))  # noqa: T201


def main() -> None:
    if sys.argv[1] == "--tables":
        return again(Path(sys.argv[2]))
    report, raw = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as scratch:
        process, zygote = start_zygote(Path(scratch))
        look = Look(zygote, report, Path(scratch))
        look.say(f"limits (provisional): output norm {NORM_LIMIT:g} a request, lse {LSE_LIMIT:g}")
        look.ragged()
        look.controls()
        look.inputs_hold()
        for seed, (name, lengths) in enumerate(TIMED.items(), start=10):
            look.time(name, lengths, seed)
        look.trusted.close()
        zygote.close()
        process.wait(10)
        if raw:
            raw.write_text(json.dumps(look.raw))


if __name__ == "__main__":
    main()
