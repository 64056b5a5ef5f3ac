"""Resolves a race card's methods; a third party's in a process of its own, without keys and behind a fence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from methods import METHODS, resolve
from suite.errors import MethodError
from suite.launch import bare_environment
from suite.types import MethodSpec

PATIENCE_S = 120.0
"""For importing a module and what it needs."""


def resolve_method(name: str, options: Mapping[str, JsonValue]) -> MethodSpec:
    """As `methods.resolve`. A method that is not of the register never runs in this process."""
    module = name.partition(":")[0]
    if name in METHODS or not all(part.isidentifier() for part in module.split(".")) or ":" not in name:
        return resolve(name, options)
    with tempfile.TemporaryDirectory(prefix="derby-method-") as folder:
        return _answer(name, _ask(name, options, folder))


def _ask(name: str, options: Mapping[str, JsonValue], folder: str) -> str:
    question = json.dumps({"name": name, "options": dict(options)})
    leash, held = os.pipe()  # closed when we die, or are done: then nothing is left over there
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "methods", folder, question],
            stdin=leash,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=folder,
            env=bare_environment(Path(folder)),
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MethodError(
            f"the method {name!r} was not imported within {PATIENCE_S:g} s", "a module that loads", "mend the module"
        ) from None
    finally:
        os.close(leash)
        os.close(held)
    return done.stdout


def _answer(name: str, text: str) -> MethodSpec:
    """The spec in the answer; only options and the use of a model are the method's own to say."""
    try:
        answer = json.loads(text)
        if "error" in answer:
            raise MethodError(*(str(part) for part in answer["error"][:3]))
        said = MethodSpec.model_validate(answer["spec"])
    except (ValueError, TypeError, KeyError, ValidationError):
        raise MethodError(
            f"the method {name!r} ended its process while it was imported", "a module that loads", "mend the module"
        ) from None
    return said.model_copy(update={"name": name.replace(":", "."), "target": name})
