"""The process a method runs in (`python -m suite.host`): its order on stdin, its workbench behind the gateway.

Two processes: a keeper, which holds no foreign code, and beneath it the method. Stdin stays open as a leash: when it
ends, since the trial has let go of it or its process is dead, the keeper kills the method. Before it ends itself it
kills whatever descends from the method, in whichever group or session: orphans come to the keeper, which is their
subreaper. If the keeper dies the kernel kills the method.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NoReturn

import psutil

from suite import confine
from suite.client import GatewayBench
from suite.errors import BudgetExhausted, MethodError, Stopped

SUITE = Path(__file__).resolve().parent


def keep(method: int) -> int:
    """Wait for the method, or for the end of the leash; leave nothing of it, return its exit code (128 + a signal)."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is meant for the method
    handle = os.pidfd_open(method)
    poll = select.poll()
    poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
    poll.register(handle, select.POLLIN)
    while handle not in {descriptor for descriptor, _ in poll.poll()}:
        if not os.read(sys.stdin.fileno(), 4096):
            os.kill(method, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(method, 0)[1])
    reap()
    return code if code >= 0 else 128 - code


def reap() -> None:
    """Kill all that descends from this process until none is left."""
    me = psutil.Process()
    while True:
        for process in me.children(recursive=True):
            with suppress(psutil.Error):
                process.kill()
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def run(order: dict[str, Any], keeper: int) -> NoReturn:
    """Run the method to its end; the exit code is 0 if it ended of itself, by its budget or by a stop."""
    confine.die_with(keeper, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    with GatewayBench.from_environment() as bench:
        method = load(order["target"], order["options"], bench)
        try:
            method.search(bench)
        except (BudgetExhausted, Stopped) as end:
            sys.stderr.write(f"{end}\n")
    sys.exit(0)


def load(target: str, options: dict[str, Any], bench: GatewayBench) -> Any:
    """The method, its module imported behind the fence. Raises `MethodError`."""
    module, _, name = target.partition(":")
    enter(fence(module, bench.folder, bench.port))
    try:
        made = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise MethodError(f"{module} has no {name!r}", "module:Class", "mend the name") from None
    return made(**options)


def fence(module: str, folder: Path, port: int) -> ModuleSpec:
    """Close the fence around this process, which will import `module`: its top-level package, still to be entered.

    The package's folder is looked up before the fence closes, since it alone of the path it lies on may be read after.
    Raises `MethodError` if there is none.
    """
    package = module.partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.loader is None:
        raise MethodError(
            f"there is no module {package!r}", "an importable module:Class", "install it or mend the name"
        )
    places: list[str | Path] = list(spec.submodule_search_locations or [])
    if not places and spec.origin:
        # A single file: it and the modules beside it, but not the folder, which may well hold races and their secrets.
        places = list(Path(spec.origin).parent.glob("*.py"))
    code: list[str | Path] = [
        *confine.SYSTEM,
        *confine.PROC,
        sys.prefix,
        sys.base_prefix,
        SUITE,
        *_libraries(),
        *places,
    ]
    confine.confine(code, [folder, os.devnull], port)
    return spec


def enter(spec: ModuleSpec) -> None:
    """Import a top-level package whose folder can no longer be searched."""
    if spec.name not in sys.modules and spec.loader is not None:
        top = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = top
        spec.loader.exec_module(top)


def _libraries() -> list[str]:
    """Folders of installed packages, wherever this interpreter finds them."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages", "lib-dynload")]


def main() -> int:
    """Read the order (one line: {"target": "module:Class", "options": {...}}), then keep or run."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(sys.stdin.fileno(), 1 << 16)
        if not part:
            return 2
        line += part
    confine.adopt_orphans()
    keeper = os.getpid()
    method = os.fork()
    if method == 0:
        run(json.loads(line), keeper)
    return keep(method)


if __name__ == "__main__":
    sys.exit(main())
