"""Starts a method's process, follows it and ends it, from the trial's side."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from suite.client import GATEWAY, TOKEN
from suite.errors import MethodError
from suite.types import MethodSpec

LOG_LIMIT = 1 << 20
"""Bytes of method.log; what a method prints beyond is read and dropped, so that it never blocks."""

TAIL = 4000
GRACE_S = 2.0
"""Between asking a method to end and ending it."""

REAPING_S = 10.0
"""The keeper has this long to end all that descends from a method."""

KEPT = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
"""Of the environment; no key of any model is among it."""


class MethodProcess:
    """A method at work: a keeper and, beneath it, the method, in a session and process group of their own."""

    def __init__(
        self,
        method: MethodSpec,
        seed: int,
        folder: Path,
        door: tuple[str, str],
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Start it; `folder` is the trial's, in which scratch/ is made anew. `door`: the gateway's address and token.

        `without` leaves walls out, see `suite.confine.lay`.
        """
        scratch = folder / "scratch"
        _make_anew(scratch)
        self._log = folder / "method.log"
        self._log.touch()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "suite.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=scratch,
            env=_environment(seed, scratch, door),
            start_new_session=True,
        )
        self._handle = os.pidfd_open(self._process.pid)
        self._pump = threading.Thread(target=self._copy, name="method-log", daemon=True)
        self._pump.start()
        order = json.dumps({"target": method.target, "options": method.options, "without": sorted(without)})
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it died at once; its exit code says so
            self._process.stdin.write(order.encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """The keeper's."""
        return self._process.pid

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended; waits for that at most `timeout_s`."""
        return bool(select.select([self._handle], [], [], timeout_s)[0])

    def end(self) -> int:
        """Make sure that nothing of it is left and return its exit code (128 + signal, or minus it, if killed)."""
        if not self.wait(0):
            self._signal(signal.SIGTERM)
            self.wait(GRACE_S)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # the leash: what is left, the keeper kills
        self.wait(REAPING_S)
        # The keeper is not reaped yet, so its number can not have passed to another group.
        self._signal(signal.SIGKILL)
        code = self._process.wait()
        self._pump.join(GRACE_S)
        os.close(self._handle)
        return code

    def tail(self) -> str:
        """The end of what it printed."""
        return self._log.read_bytes()[-TAIL:].decode(errors="replace")

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _copy(self) -> None:
        assert self._process.stdout is not None
        room = LOG_LIMIT
        with self._log.open("wb", buffering=0) as log, self._process.stdout as output:
            while part := os.read(output.fileno(), 1 << 16):
                with suppress(OSError):  # no room on the disk: still to be read, or the method would block for ever
                    log.write(part[:room])
                room = max(room - len(part), 0)


def _make_anew(scratch: Path) -> None:
    """Raises `MethodError` if what an earlier life left there can not be removed."""
    # Not shutil.rmtree: a method may nest folders deeper than Python recurses.
    removal = subprocess.run(["rm", "-rf", "--", str(scratch)], capture_output=True, text=True, check=False)
    if os.path.lexists(scratch):
        raise MethodError(
            f"{scratch} can not be removed: {removal.stderr.strip()[:300]}",
            "a folder that the method starts with empty",
            "remove it by hand, then run again",
        )
    scratch.mkdir(parents=True)


def bare_environment(home: Path) -> dict[str, str]:
    """What a process that runs a method's code gets of our environment: this interpreter's path, and no key."""
    return {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": os.pathsep.join(str(Path(path).resolve()) for path in sys.path if Path(path).is_dir()),
    }


def _environment(seed: int, scratch: Path, door: tuple[str, str]) -> dict[str, str]:
    return {
        **bare_environment(scratch),
        "PYTHONHASHSEED": str(seed % 2**32),
        "PYTHONUNBUFFERED": "1",
        GATEWAY: door[0],
        TOKEN: door[1],
    }
