"""Resolves one method behind the fence that its own process will have (`python -P -m methods FOLDER`).

In on stdin: {"name": "module:Class", "options": {...}}. Out on stdout: {"spec": ...} or {"error": [three parts]}. So a
third party's module is never imported beside the keys and the races of whoever wants to race it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from methods import loading, resolve
from suite import host
from suite.errors import MethodError


def main() -> None:
    """Answer one question. What the module prints goes to stderr: only the answer is on stdout."""
    asked = json.load(sys.stdin)
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    module = asked["name"].partition(":")[0]
    try:
        top = host.fence(module, Path(sys.argv[1]), 0)
        with loading(asked["name"], module):
            host.enter(top)
        json.dump({"spec": resolve(asked["name"], asked["options"]).model_dump(mode="json")}, answer)
    except MethodError as error:
        json.dump({"error": [error.came, error.expected, error.todo]}, answer)
    answer.close()


if __name__ == "__main__":
    main()
