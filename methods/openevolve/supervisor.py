"""Starts OpenEvolve's process, ends it when the gateway has refused it, and starts it again when it dies."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from methods.openevolve import checkpoints
from methods.openevolve.settings import Home
from suite.errors import MethodError

POLL_S = 0.2
GRACE_S = 2.0
"""Between asking the process to end and ending it."""

DEATHS = 3
"""Deaths in a row without a new checkpoint in between that make it the method's failure."""


def supervise(home: Home, seed: int) -> None:
    """Run OpenEvolve to its end, whatever dies on the way. Raises `MethodError` if it dies again and again."""
    deaths = reached = number = code = 0
    while deaths < DEATHS:
        checkpoint = checkpoints.newest(home.folder)
        code = _attempt(home, seed, number, checkpoint)
        if code == 0 or home.refusal.exists():
            return
        number += 1
        latest = checkpoints.newest(home.folder)
        moved = latest is not None and checkpoints.iteration(latest) > reached
        reached = checkpoints.iteration(latest) if latest is not None else reached
        deaths = 1 if moved else deaths + 1
        sys.stderr.write(f"OpenEvolve's process ended with {code}; the newest checkpoint is of iteration {reached}\n")
    raise MethodError(
        f"OpenEvolve's process died {DEATHS} times in a row without getting any further, last with exit code {code}",
        "a process that ends by the budget or of itself",
        "read what it wrote in the trial's method.log",
    )


def _attempt(home: Home, seed: int, number: int, checkpoint: Path | None) -> int:
    """One start of the runner, to its end; returns its exit code."""
    output = home.attempt(number)
    output.mkdir()
    resumed = [str(checkpoints.repaired(checkpoint, output / "resumed"))] if checkpoint else []
    words = [str(home.folder), str(number), str(os.getpid()), *resumed]
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "methods.openevolve.runner", *words],
        stdin=subprocess.DEVNULL,
        cwd=output,
        env=_environment(home, seed),
        process_group=0,
    )
    handle = os.pidfd_open(process.pid)
    try:
        while not _ended(handle, POLL_S) and not home.refusal.exists():
            checkpoints.prune(output)
        if not _ended(handle, 0):
            process.send_signal(signal.SIGTERM)
            _ended(handle, GRACE_S)
    finally:
        # Not reaped yet, so its number is still its group's: this reaches it and every worker, dead leader or not.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        os.close(handle)
        code = process.wait()
    return code


def _ended(handle: int, timeout_s: float) -> bool:
    return bool(select.select([handle], [], [], timeout_s)[0])


def _environment(home: Home, seed: int) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONHASHSEED": str(seed % 2**32),
        "TMPDIR": str(home.temporary),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }
