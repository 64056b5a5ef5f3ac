"""A hostile method, which says what came of its attempts; a diligent one, which uses all it may."""

from __future__ import annotations

import asyncio
import ctypes
import multiprocessing
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any, ClassVar

import httpx2

from suite.client import GATEWAY, TOKEN
from suite.workbench import Workbench
from tests.suite.probes import say

LIBC = ctypes.CDLL(None, use_errno=True)
FIRST = os.uname().machine == "x86_64"


def number(x86: int, arm: int, *arguments: object) -> int:
    """A system call by its number on either machine. Raises `OSError`."""
    result = int(LIBC.syscall(x86 if FIRST else arm, *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def connect(address: str) -> str:
    """To a local socket."""
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(address)
    return "connected"


def datagram(address: str) -> int:
    """To a local socket, from one end of a pair."""
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with one, other:
        return one.sendto(b"x", address)


def mptcp(port: int) -> str:
    """A stream that landlock's list of ports does not know."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as end:
        end.connect(("127.0.0.1", port))
    return "connected"


def fast_open(port: int) -> int:
    """A connection that is opened by what is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as end:
        return end.sendto(b"x", 0x20000000, ("127.0.0.1", port))


def tcp(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), 5):
        return "connected"


def grow(size: int) -> str:
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, size)
    return "there is room"


def bomb(tasks: int) -> int:
    """So many threads at a time."""
    end, made = threading.Event(), []
    try:
        for _ in range(tasks):
            made.append(threading.Thread(target=end.wait, daemon=True))
            made[-1].start()
    except RuntimeError as full:
        raise OSError("no more") from full
    finally:
        end.set()
    return len(made)


def session() -> int:
    """A new one, of a child's."""
    return subprocess.run(["/bin/true"], start_new_session=True, check=True).returncode


@dataclass(frozen=True)
class Intruder:
    """Tries Python expressions by name; `victim` is a process, `file` its file, `port` and `address` its sockets."""

    uses_model: ClassVar[bool] = False
    attempts: dict[str, str]
    victim: int
    file: str
    port: int
    address: str

    def search(self, bench: Workbench) -> None:
        names = {**globals(), "victim": self.victim, "file": self.file, "port": self.port, "address": self.address}
        for name, code in self.attempts.items():
            try:
                say(name, f"did {eval(code, names)!r}"[:200])
            except (OSError, ValueError) as refusal:  # the latter from setrlimit
                say(name, f"refused {type(refusal).__name__}")
            except Exception as error:  # noqa: BLE001 a broken attempt must not pass for a refused one
                say(name, f"broken {error!r}")


# ---------------------------------------------------------------------------------------------- the diligent one


def square(value: int) -> int:
    return value * value


def ask(_: int = 0) -> int:
    """The gateway, from wherever it is called."""
    headers = {"Authorization": f"Bearer {os.environ[TOKEN]}"}
    return httpx2.get(f"{os.environ[GATEWAY]}/derby/left", headers=headers, trust_env=False).status_code


def pool(how: str) -> str:
    """A pool of worker processes that compute and talk to the gateway."""
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(how)) as workers:
        return f"{sum(workers.map(square, range(5)))} {set(workers.map(ask, range(2)))}"


async def _talk() -> str:
    async with httpx2.AsyncClient(trust_env=False, headers={"Authorization": f"Bearer {os.environ[TOKEN]}"}) as client:
        answers = await asyncio.gather(*(client.get(f"{os.environ[GATEWAY]}/derby/left") for _ in range(3)))
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(7)", stdout=subprocess.PIPE)
    said, _ = await process.communicate()
    return f"{[answer.status_code for answer in answers]} {said.decode().strip()}"


def shared() -> bytes:
    memory = shared_memory.SharedMemory(create=True, size=64)
    assert memory.buf is not None
    memory.buf[:2] = b"ab"
    again = shared_memory.SharedMemory(memory.name)
    assert again.buf is not None
    seen = bytes(again.buf[:2])
    again.close()
    memory.close()
    memory.unlink()
    return seen


def manager() -> int:
    with multiprocessing.Manager() as manages:
        return len(manages.list([1, 2]))


def files() -> str:
    """Modes, times, copies, a database: in its own folder."""
    here = Path(tempfile.mkdtemp())
    (here / "a").write_text("x")
    shutil.copy2(here / "a", here / "b")
    (here / "b").chmod(0o600)
    with sqlite3.connect(here / "db") as base:
        base.execute("create table t (x)")
    return "".join(sorted(path.name for path in here.iterdir()))


HABITS: dict[str, Callable[[], Any]] = {
    "fork": lambda: pool("fork"),
    "spawn": lambda: pool("spawn"),
    "forkserver": lambda: pool("forkserver"),
    "asyncio": lambda: asyncio.run(_talk()),
    "shared memory": shared,
    "manager": manager,
    "files": files,
    "program": lambda: subprocess.run([sys.executable, "-c", "import tests.suite.stage"], check=False).returncode,
    "group": lambda: subprocess.run(["/bin/true"], process_group=0, check=False).returncode,
    "limits": lambda: resource.getrlimit(resource.RLIMIT_NICE),
    "threads": lambda: bomb(50),
}


@dataclass(frozen=True)
class Diligent:
    """Does what search programs do; `habits` says what of it."""

    uses_model: ClassVar[bool] = False
    habits: tuple[str, ...] = tuple(HABITS)

    def search(self, bench: Workbench) -> None:
        for name in self.habits:
            say(name, HABITS[name]())
