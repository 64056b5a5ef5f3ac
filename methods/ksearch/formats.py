"""What a kernel looks like in an answer: one fenced file, or for CUDA the original's three parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from methods.ksearch.prompts import fence
from methods.reply import ReplyTrouble, candidate_in, spoken
from suite.types import Candidate, Language, SourceFile

FENCES = {Language.CPP: "cpp", Language.CUDA: "cuda", Language.PYTHON: "python", Language.TRITON: "python"}


class Format(Protocol):
    """How candidates are asked for, read and shown."""

    @property
    def instructions(self) -> str:
        """The words at the end of a prompt."""

    def read(self, text: str, starter: Candidate) -> Candidate | None:
        """The candidate of an answer, made to the starter's spec; None if the answer holds none."""

    def show(self, candidate: Candidate) -> str:
        """The candidate as prompts hold it."""


@dataclass(frozen=True)
class OneFile:
    """The complete new file in one code block."""

    language: Language

    @property
    def instructions(self) -> str:
        return "One code block that holds the complete new file, and nothing else in a code block."

    def read(self, text: str, starter: Candidate) -> Candidate | None:
        found = candidate_in(text, starter)
        return None if isinstance(found, ReplyTrouble) else found

    def show(self, candidate: Candidate) -> str:
        return fence(candidate.text(), FENCES[self.language])


PARTS = {"kernel.h": "header_file", "kernel.cu": "cuda_file", "main.cpp": "cpp_file"}
"""File -> tag; in this order."""
ENTRY = "main.cpp"


@dataclass(frozen=True)
class ThreeFiles:
    """Declarations, kernels with their launchers, and the entry point, each in a tag of its own."""

    @property
    def instructions(self) -> str:
        shape = "\n".join(f'<{tag} name="{name}">...</{tag}>' for name, tag in PARTS.items())
        return (
            "Exactly these three parts, each a complete file, without code fences:\n"
            f"{shape}\n"
            "kernel.h declares what kernel.cu holds: kernels and the functions that launch them. main.cpp holds the "
            "entry point that the task asks for, and calls them."
        )

    def read(self, text: str, starter: Candidate) -> Candidate | None:
        """The three files; an answer in which one is missing or empty is none."""
        answer = spoken(text)
        files = {name: _part(answer, name, tag) for name, tag in PARTS.items()}
        if not all(files.values()):
            return None
        symbol = starter.spec.entry_point.partition("::")[2]
        spec = starter.spec.model_copy(update={"entry_point": f"{ENTRY}::{symbol}"})
        return Candidate(spec=spec, sources=tuple(SourceFile(path=name, content=text) for name, text in files.items()))

    def show(self, candidate: Candidate) -> str:
        """A candidate of other files, such as a starter, is shown file by file."""
        if [source.path for source in candidate.sources] == list(PARTS):
            return "\n".join(
                f'<{PARTS[source.path]} name="{source.path}">\n{source.content.rstrip()}\n</{PARTS[source.path]}>'
                for source in candidate.sources
            )
        return "\n".join(fence(source.content, f"cuda {source.path}") for source in candidate.sources)


def format_for(language: Language, one_file: bool) -> Format:
    """The original's format for a language; `one_file` asks for a single file in CUDA too."""
    return ThreeFiles() if language == Language.CUDA and not one_file else OneFile(language)


def _part(text: str, name: str, tag: str) -> str:
    """The last such part; code fences just within it are taken off."""
    found = re.findall(rf'<{tag}\s+name\s*=\s*["\']{re.escape(name)}["\']\s*>(.*?)</{tag}>', text, re.DOTALL)
    if not found:
        return ""
    body = re.sub(r"\A\s*```[^\n]*\n(.*?)\n?```\s*\Z", r"\1", found[-1], flags=re.DOTALL).strip("\n")
    return f"{body}\n".encode(errors="replace").decode() if body.strip() else ""
