"""The process a method runs in (`python -m suite.host`): its order on stdin, its workbench behind the gateway.

Beneath a keeper (`suite/keeper.py`), behind walls (`suite/confine.py`). The scratch folder is $HOME.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NoReturn

from suite import confine
from suite.client import GatewayBench
from suite.errors import BudgetExhausted, MethodError, Stopped
from suite.keeper import keep

SUITE = Path(__file__).resolve().parent


def run(order: dict[str, Any], ground: confine.Ground) -> NoReturn:
    """Run the method to its end; the exit code is 0 if it ended of itself, by its budget or by a stop."""
    with GatewayBench.from_environment() as bench:
        method = load(order, bench, ground)
        try:
            method.search(bench)
        except (BudgetExhausted, Stopped) as end:
            sys.stderr.write(f"{end}\n")
    sys.exit(0)


def load(order: dict[str, Any], bench: GatewayBench, ground: confine.Ground) -> Any:
    """The method, its module imported behind the walls. Raises `MethodError`."""
    module, _, name = order["target"].partition(":")
    enter(enclose(module, ground, bench.folder, bench.port))
    try:
        made = getattr(importlib.import_module(module), name)
    except AttributeError:
        raise MethodError(f"{module} has no {name!r}", "module:Class", "mend the name") from None
    return made(**order["options"])


def enclose(module: str, ground: confine.Ground, scratch: Path, port: int) -> ModuleSpec:
    """Close the walls around this process, which will import `module`: its top-level package, still to be entered.

    The package's folder is looked up before they close, since it alone of the path it lies on may be read after. Raises
    `MethodError` if there is none, or if the race lies in it.
    """
    package = module.partition(".")[0]
    spec = importlib.util.find_spec(package)
    if spec is None or spec.loader is None:
        raise MethodError(
            f"there is no module {package!r}", "an importable module:Class", "install it or mend the name"
        )
    places = [str(place) for place in spec.submodule_search_locations or []]
    for place in places:
        if scratch.resolve().is_relative_to(Path(place).resolve()):
            raise MethodError(
                f"the race lies in {place}, which the method may read",
                "a race outside the method's package",
                "race in another folder",
            )
    if not places and spec.origin:
        # A single file: it and the modules beside it, but not the folder, which may well hold races and their secrets.
        places = [str(path) for path in Path(spec.origin).parent.glob("*.py")]
    confine.close(ground, [sys.prefix, sys.base_prefix, str(SUITE), *_libraries(), *places], scratch, port)
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
    """Read the order (one line: {"target": "module:Class", "options": {...}, "without": [...]}), then have it run."""
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(sys.stdin.fileno(), 1 << 16)
        if not part:
            return 2
        line += part
    order = json.loads(line)
    return keep(lambda ground: run(order, ground), Path(os.environ["HOME"]), frozenset(order["without"]))


if __name__ == "__main__":
    sys.exit(main())
