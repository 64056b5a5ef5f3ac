"""Where a trial ran: machine, compiler, versions and revision, in words for the record. Imports nothing heavy."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from suite.confine import profile

PACKAGES = (
    "kernel-derby",
    "mlflow",
    "numpy",
    "openai",
    "openevolve",
    "optuna",
    "pydantic",
    "ray",
    "scipy",
    "torch",
    "triton",
)
COMPILERS = ("g++", "nvcc")
SUITE = Path(__file__).resolve().parent


def describe() -> dict[str, str]:
    """Everything about this machine that may bear on a result."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "kernel": platform.release(),
        "cpu": cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "revision": revision(),
        "method_fence": profile(),
        **toolchain(),
        **{f"package {name}": version for name in PACKAGES if (version := _version(name))},
    }


def toolchain() -> dict[str, str]:
    """What turns sources into machine code: compilers, and torch, which brings kernels of its own."""
    found = {name: version for name in COMPILERS if (version := compiler(name))}
    torch = _version("torch")
    return {**found, **({"torch": torch} if torch else {})}


def compiler(name: str) -> str | None:
    """A compiler's version in its own words, None if it is not there."""
    path = shutil.which(name)
    if path is None:
        return None
    text = _output([path, "--version"])
    return next((line for line in text.splitlines() if any(mark in line for mark in ("g++", "release"))), name)


def cpu_model() -> str:
    """The processor's name as the kernel has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.lower().startswith(("model name", "cpu model")))
    return next(names, platform.processor() or platform.machine())


def revision() -> str:
    """The suite's git commit, "+" after it if files were changed since; "unknown" outside a checkout."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    commit = _output([git, "-C", str(SUITE), "rev-parse", "HEAD"]).strip()
    changed = _output([git, "-C", str(SUITE), "status", "--porcelain", "--untracked-files=no"]).strip()
    return f"{commit}{'+' if changed else ''}" if commit else "unknown"


def _output(command: list[str]) -> str:
    """What a command prints, empty if it fails or takes unreasonably long."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
