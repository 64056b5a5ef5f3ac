"""Splits C++ text into code, comments and literals, so that a rule about code is not tripped by prose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    WORD = "word"
    NUMBER = "number"
    STRING = "string"
    DIRECTIVE = "directive"
    MARK = "mark"


@dataclass(frozen=True)
class Token:
    """A string's `text` is its content without quotes, neighbours joined as the compiler joins them.

    A directive's is the line behind `#`, without comments.
    """

    kind: Kind
    text: str


_SPLICE = re.compile(r"\\[ \t]*\r?\n")
_TOKEN = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))
    |(?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\((?P<content>.*?)(?:\)(?P=delimiter)"|\Z))
    |(?P<string>(?:u8|[uUL])?"(?P<body>(?:\\.|[^"\\\n])*)"?)
    |(?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
    |(?P<directive>^[ \t]*(?:\#|%:))
    |(?P<number>\.?\d(?:[eEpP][+-]|'[0-9a-zA-Z]|[\w.])*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<space>\s+)
    |(?P<mark>::|->|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_NOISE = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|(?P<keep>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\n)""", re.DOTALL | re.VERBOSE
)
_ESCAPE = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]{1,6})|(?P<octal>[0-7]{1,3})|(?P<other>.))", re.DOTALL)


def tokens(source: str) -> tuple[Token, ...]:
    """The tokens of a C++ text, comments left out. Never fails: what is no C++ comes out as marks."""
    text = _SPLICE.sub("", source)
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise AssertionError("every character is at least a mark")
        at = match.end()
        if match["directive"] is not None:
            line, at = _directive(text, at)
            found.append(Token(Kind.DIRECTIVE, line))
        elif (content := _string(match)) is not None:
            if found and found[-1].kind is Kind.STRING:
                content = found.pop().text + content
            found.append(Token(Kind.STRING, content))
        elif match["word"] is not None:
            found.append(Token(Kind.WORD, match["word"]))
        elif match["number"] is not None or match["char"] is not None:
            found.append(Token(Kind.NUMBER, match[0]))
        elif match["mark"] is not None:
            found.append(Token(Kind.MARK, match["mark"]))
    return tuple(found)


def _string(match: re.Match[str]) -> str | None:
    if match["raw"] is not None:
        return match["content"]
    return None if match["string"] is None else _ESCAPE.sub(_unescaped, match["body"])


def _unescaped(match: re.Match[str]) -> str:
    if match["other"] is not None:
        return match["other"]
    code = int(match["hex"], 16) if match["hex"] is not None else int(match["octal"], 8)
    return chr(code) if code < 0x110000 else "?"


def _directive(text: str, at: int) -> tuple[str, int]:
    """The rest of the line, on which a block comment may hide further line ends; (line, where it ends)."""
    kept: list[str] = []
    while at < len(text):
        match = _NOISE.match(text, at)
        if match is None:
            kept.append(text[at])
            at += 1
            continue
        if match[0] == "\n":
            break
        kept.append(match["keep"] or " ")
        at = match.end()
    return "".join(kept).strip(), at
