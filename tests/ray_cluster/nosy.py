"""A third party's method that looks around while it is imported; what it saw becomes the default of its option."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from suite.workbench import Workbench

SECRET = Path(tempfile.gettempdir()) / "derby-nosy-secret"


def look() -> str:
    """Names of what could be read: the key, the parent's environment, a file of the user's, ray and mlflow's memory."""
    seen = ["key"] if "OPENAI_API_KEY" in os.environ else []
    for name, path in (("parent", Path(f"/proc/{os.getppid()}/environ")), ("file", SECRET)):
        try:
            path.read_bytes()
        except OSError:
            continue
        seen.append(name)
    return ", ".join(seen + [name for name in ("ray", "mlflow") if name in sys.modules])


sys.stdout.write('{"spec": "what is printed is no answer"}\n')


@dataclass(frozen=True)
class Nosy:
    """Searches for nothing."""

    uses_model: ClassVar[bool] = False
    seen: str = look()

    def search(self, bench: Workbench) -> None:
        """Nothing to do."""
