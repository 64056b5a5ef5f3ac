"""Gets a candidate out of a model's answer: a whole file in a code block, or SEARCH/REPLACE edits of the one before.

Whatever a model writes, nothing here raises: what cannot be used comes back as `ReplyTrouble`, in words for a model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from suite.fences import Block, fenced
from suite.types import Candidate, SourceFile
from suite.workbench import EditFormat

_THOUGHTS = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_SEARCH = re.compile(r"<{5,9} ?SEARCH\s*")
_MIDDLE = re.compile(r"={5,9}\s*")
_REPLACE = re.compile(r">{5,9} ?REPLACE\s*")
_CODE_STARTS = ("#include", "#pragma", "extern", "//", "/*", "import ", "from ", '"""')


@dataclass(frozen=True)
class ReplyTrouble:
    """Why an answer gives no candidate."""

    reason: str


@dataclass(frozen=True)
class Edit:
    """Lines to find and lines to put in their place."""

    search: tuple[str, ...]
    replace: tuple[str, ...]


def candidate_in(text: str, before: Candidate, edit_format: EditFormat = "whole") -> Candidate | ReplyTrouble:
    """The candidate an answer proposes: `before` with another entry file, all else kept."""
    path, _, symbol = before.spec.entry_point.partition("::")
    content = whole(text, symbol) if edit_format == "whole" else edited(text, before.text(path))
    if isinstance(content, ReplyTrouble):
        return content
    content = content.encode(errors="replace").decode()
    sources = tuple(
        SourceFile(path=path, content=content) if source.path == path else source for source in before.sources
    )
    return Candidate(spec=before.spec, sources=sources)


def spoken(text: str) -> str:
    """The answer as it counts: without the thoughts some models put before it, line ends in one form."""
    return _THOUGHTS.sub("", text.replace("\r\n", "\n"))


# ---------------------------------------------------------------------------------------------- whole files


def whole(text: str, symbol: str) -> str | ReplyTrouble:
    """The last code block that defines `symbol`; complete blocks go before one the answer breaks off in."""
    text = spoken(text)
    blocks = fenced(text)
    if not blocks:
        return _bare(text, symbol)
    mentions = re.compile(rf"(?<!\w){re.escape(symbol)}\s*\(")
    fitting = [block for block in blocks if mentions.search(block.text)]
    if not fitting:
        return ReplyTrouble(f"no code block of the answer defines {symbol}()")
    return _best(fitting).text


def _best(blocks: list[Block]) -> Block:
    """The last complete block, or the last one."""
    return next((block for block in reversed(blocks) if block.closed), blocks[-1])


def _bare(text: str, symbol: str) -> str | ReplyTrouble:
    """An answer that is nothing but code, as some models give when asked for nothing else."""
    if not text.strip():
        return ReplyTrouble("the answer is empty")
    if text.lstrip().startswith(_CODE_STARTS) and re.search(rf"(?<!\w){re.escape(symbol)}\s*\(", text):
        return text.strip("\n") + "\n"
    return ReplyTrouble("the answer has no code block")


# ---------------------------------------------------------------------------------------------- edits


def edited(text: str, source: str) -> str | ReplyTrouble:
    """`source` after all SEARCH/REPLACE edits of the answer, in their order; one that cannot be applied spoils all."""
    edits = edits_in(spoken(text))
    if isinstance(edits, ReplyTrouble):
        return edits
    lines = source.split("\n")
    for number, edit in enumerate(edits, start=1):
        place = _place(lines, edit)
        if isinstance(place, ReplyTrouble):
            return ReplyTrouble(f"edit {number}: {place.reason}")
        start, replacement = place
        lines[start : start + len(edit.search)] = replacement
    return "\n".join(lines)


def edits_in(text: str) -> tuple[Edit, ...] | ReplyTrouble:
    """The edits of an answer; around them anything may stand."""
    edits: list[Edit] = []
    search: list[str] | None = None
    replace: list[str] | None = None
    for line in text.split("\n"):
        if search is None:
            search = [] if _SEARCH.fullmatch(line.strip()) else None
        elif replace is None:
            if _MIDDLE.fullmatch(line):
                replace = []
            else:
                search.append(line)
        elif _REPLACE.fullmatch(line.strip()):
            edits.append(Edit(tuple(search), tuple(replace)))
            search = replace = None
        else:
            replace.append(line)
    if search is not None:
        return ReplyTrouble(f"edit {len(edits) + 1} breaks off before its end")
    return tuple(edits) if edits else ReplyTrouble("the answer has no SEARCH/REPLACE edit")


def _place(lines: list[str], edit: Edit) -> tuple[int, list[str]] | ReplyTrouble:
    """Where the edit belongs, and what to put there.

    By exact match, else overlooking spaces at line ends, else overlooking indentation and carrying the difference over.
    """
    if not any(line.strip() for line in edit.search):
        return ReplyTrouble("its SEARCH part is empty")
    for view in (str, str.rstrip, str.strip):
        wanted = [view(line) for line in edit.search]
        shown = [view(line) for line in lines]
        span = len(wanted)
        starts = [
            at for at in range(len(shown) - span + 1) if shown[at] == wanted[0] and shown[at : at + span] == wanted
        ]
        if len(starts) > 1:
            return ReplyTrouble(f"its SEARCH part stands {len(starts)} times in the source")
        if starts:
            found = lines[starts[0] : starts[0] + span]
            return starts[0], list(edit.replace) if view is not str.strip else _indented(edit, found)
    return ReplyTrouble("its SEARCH part is not in the source")


def _indented(edit: Edit, found: list[str]) -> list[str]:
    """The replacement, shifted as the source's first line is shifted against the edit's."""
    index = next(index for index, line in enumerate(edit.search) if line.strip())
    given, real = _indent(edit.search[index]), _indent(found[index])
    return [real + line.removeprefix(given) if line.strip() else line for line in edit.replace]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
