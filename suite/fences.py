"""Finds the fenced code blocks of a Markdown text, well-formed or not: prompts and model answers hold both kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPEN = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<info>.*)$")


@dataclass(frozen=True)
class Block:
    """`info` is what stands behind the opening marks ("cpp main.cpp"); `closed` is false if the text ends first."""

    info: str
    text: str
    closed: bool


@dataclass
class _Open:
    indent: int
    mark: str
    length: int
    info: str
    lines: list[str]

    def closes(self, line: str) -> bool:
        """Only marks of the same kind, at least as many, and nothing behind them end a block."""
        bare = line.strip()
        return len(bare) >= self.length and bare == self.mark * len(bare)

    def block(self, closed: bool) -> Block:
        lines = [line[self.indent :] if not line[: self.indent].strip() else line for line in self.lines]
        return Block(self.info, "".join(f"{line}\n" for line in lines), closed)


def fenced(text: str) -> tuple[Block, ...]:
    """All fenced blocks in order of opening. What looks like a fence within a block is its text."""
    blocks: list[Block] = []
    current: _Open | None = None
    for raw in text.split("\n"):
        line = raw.removesuffix("\r")
        if current is not None:
            if current.closes(line):
                blocks.append(current.block(closed=True))
                current = None
            else:
                current.lines.append(line)
            continue
        found = _OPEN.match(line)
        # Marks of inline code (```x``` on one line) open nothing.
        if found and not (found["marks"][0] == "`" and "`" in found["info"]):
            marks = found["marks"]
            current = _Open(len(found["indent"]), marks[0], len(marks), found["info"].strip(), [])
    if current is not None:
        if text.endswith("\n"):
            current.lines = current.lines[:-1]  # the end of the last line is not a line of its own
        blocks.append(current.block(closed=False))
    return tuple(blocks)
