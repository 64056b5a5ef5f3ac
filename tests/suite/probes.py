"""Methods for tests: each does one thing a method may do, well or badly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from suite.errors import BudgetExhausted
from suite.events import Message
from suite.types import Candidate, Language, SourceFile, Spec
from suite.workbench import Workbench


def kernel(text: str) -> Candidate:
    return Candidate(
        spec=Spec(language=Language.CPP, entry_point="kernel.cpp::run"),
        sources=(SourceFile(path="kernel.cpp", content=text),),
    )


def attempt(action: Callable[[], str]) -> str:
    try:
        return f"did: {action()}"
    except OSError as refusal:
        return f"refused: {type(refusal).__name__}"


def say(name: str, words: object) -> None:
    """A line of method.log, which is all that is left of a method."""
    sys.stdout.write(f"{name}: {words}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Walker:
    """Proposes numbered kernels, each twice, until its budget or `steps` are spent."""

    steps: int = 1000

    def search(self, bench: Workbench) -> None:
        for step in range(self.steps):
            bench.evaluate(kernel(f"// step {step}"), note=f"step {step}")
            bench.evaluate(kernel(f"// step {step}"))


@dataclass(frozen=True)
class Talker:
    """Asks the same question again and again and proposes the answers, on several threads."""

    threads: int = 1

    def search(self, bench: Workbench) -> None:
        workers = [threading.Thread(target=self._work, args=(bench, index)) for index in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def _work(self, bench: Workbench, index: int) -> None:
        try:
            while True:
                reply = bench.chat([Message(role="user", content=f"{bench.brief} {index}")])
                bench.evaluate(kernel(reply.text))
        except BudgetExhausted:
            pass


@dataclass(frozen=True)
class Dallying:
    """Proposes one kernel, then only looks what is left, for ever."""

    def search(self, bench: Workbench) -> None:
        bench.evaluate(kernel("// scripted: 3.0"))
        while True:
            bench.left()
            time.sleep(0.02)


@dataclass(frozen=True)
class Chattering:
    """Asks for ever and never proposes anything."""

    def search(self, bench: Workbench) -> None:
        while True:
            bench.chat([Message(role="user", content="well?")])


@dataclass(frozen=True)
class Loop:
    """Proposes the same kernel for ever."""

    def search(self, bench: Workbench) -> None:
        while True:
            bench.evaluate(kernel("// the same"))


@dataclass(frozen=True)
class Deaf:
    """Goes on after its budget is spent."""

    def search(self, bench: Workbench) -> None:
        step = 0
        while True:
            step += 1
            try:
                bench.evaluate(kernel(f"// step {step}"))
            except BudgetExhausted:
                time.sleep(0.05)


@dataclass(frozen=True)
class Failing:
    """Proposes one good kernel, then fails."""

    def search(self, bench: Workbench) -> None:
        bench.evaluate(kernel("// scripted: 3.0"))
        raise RuntimeError("the method's own mistake")


@dataclass(frozen=True)
class Suicidal:
    """Proposes one kernel, then dies by a signal, every time."""

    def search(self, bench: Workbench) -> None:
        bench.evaluate(kernel("// scripted: 2.0"))
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Idle:
    """Does nothing for an hour, beside a child process of its own that does the same."""

    def search(self, bench: Workbench) -> None:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        say("ready", "to idle")
        time.sleep(3600)


@dataclass(frozen=True)
class Spy:
    """Says what it can reach: `paths` to read and to write, its environment's names, what its folder holds."""

    read: str = ""
    write: str = ""

    def search(self, bench: Workbench) -> None:
        say("environment", " ".join(sorted(os.environ)))
        say("folder", os.listdir(bench.folder))
        say("read", attempt(lambda: f"{len(Path(self.read).read_text())}"))
        say("write", attempt(lambda: str(Path(self.write).write_text("spy"))))
        say("parent", attempt(lambda: Path(f"/proc/{os.getppid()}/environ").read_text()))


@dataclass(frozen=True)
class Chatty:
    """Prints megabytes, then ends well."""

    def search(self, bench: Workbench) -> None:
        for _ in range(64):
            print("x" * 65536)  # noqa: T201


@dataclass(frozen=True)
class Caller:
    """Says which ports it can connect to."""

    port: str

    def search(self, bench: Workbench) -> None:
        for name, port in (("door", int(self.port)), ("other", 1)):
            say(name, attempt(lambda port=port: self._connect(port)))  # type: ignore[misc]

    def _connect(self, port: int) -> str:
        with socket.create_connection(("127.0.0.1", port), timeout=10):
            return "connected"


@dataclass(frozen=True)
class Daemon:
    """Leaves a process behind that has a session of its own, where one is granted, and no parent; may stay itself."""

    stay: bool = False

    def search(self, bench: Workbench) -> None:
        nap = "import os, time; open('daemon', 'w').write('up'); time.sleep(3600)"
        if os.fork() == 0:
            with suppress(PermissionError):
                os.setsid()
            subprocess.Popen([sys.executable, "-c", nap])
            os._exit(0)
        while not (bench.folder / "daemon").exists():
            time.sleep(0.05)
        say("daemon", "up")
        if self.stay:
            time.sleep(3600)


@dataclass(frozen=True)
class Orphaning:
    """Leaves a child process behind."""

    def search(self, bench: Workbench) -> None:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        say("child", "up")
