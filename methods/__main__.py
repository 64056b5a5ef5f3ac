"""Resolves one method behind the walls that its own process will have (`python -P -m methods FOLDER QUESTION`).

The question is {"name": "module:Class", "options": {...}}, the answer on stdout {"spec": ...} or {"error": [three
parts]}. So a third party's module is never imported beside the keys and the races of whoever wants to race it. Standard
input is the leash of `suite.keeper`; the folder is empty and for this alone.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

from methods import loading, resolve
from suite import host
from suite.confine import Ground
from suite.errors import MethodError
from suite.keeper import keep


def answer(asked: dict[str, Any], folder: Path, ground: Ground) -> NoReturn:
    """Answer one question. What the module prints goes to stderr: only the answer is on stdout."""
    said = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    module = asked["name"].partition(":")[0]
    try:
        top = host.enclose(module, ground, folder, 0)
        with loading(asked["name"], module):
            host.enter(top)
        json.dump({"spec": resolve(asked["name"], asked["options"]).model_dump(mode="json")}, said)
    except MethodError as error:
        json.dump({"error": [error.came, error.expected, error.todo]}, said)
    said.close()
    sys.exit(0)


def main() -> int:
    """The folder and the question are arguments."""
    folder, question = Path(sys.argv[1]), json.loads(sys.argv[2])
    return keep(lambda ground: answer(question, folder, ground), folder)


if __name__ == "__main__":
    sys.exit(main())
