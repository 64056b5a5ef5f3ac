"""Refuses a candidate by reading it: names that leave the folder, a missing entry point, calls no kernel needs.

A cheap filter in front of the judge, not a proof: what it lets pass runs in the sandbox, which trusts nothing. Hence
few rules, each sure; comments and strings trip none of them.
"""

from __future__ import annotations

import re
from itertools import pairwise

from suite import lexer, pysource
from suite.lexer import Kind, Token
from suite.types import Candidate, Failure, Language, Task

SIZE_LIMIT = 256 * 1024
"""Bytes of all sources together."""
FILE_LIMIT = 64

_NAME = re.compile(r"[A-Za-z0-9_+\-][A-Za-z0-9_.+\-]*(?:/[A-Za-z0-9_+\-][A-Za-z0-9_.+\-]*)*")
_SUFFIX = {Language.CPP: (".cpp", ".cc"), Language.CUDA: (".cu",), Language.PYTHON: (".py",), Language.TRITON: (".py",)}
_CALL = re.compile(r"system|popen|v?fork|clone3|ptrace|dlm?open|exec[lv]p?e?|posix_spawnp?|process_vm_(?:read|write)v")
_INCLUDE = re.compile(r"(?:include|include_next|import|embed)\b\s*(?P<target>.*)", re.DOTALL)
_TARGET = re.compile(r"""["<]\s*(?P<path>[^">]*)[">]""")


def screen(task: Task, candidate: Candidate) -> Failure | None:
    """Why the candidate may not run, or None. Pure: reads the text, touches nothing."""
    detail = _names(candidate) or _entry_file(task, candidate)
    if detail is None and candidate.spec.language in (Language.CPP, Language.CUDA):
        detail = _cpp(candidate)
    elif detail is None:
        detail = _python(task, candidate)
    return None if detail is None else Failure(stage="screen", detail=detail)


def _names(candidate: Candidate) -> str | None:
    paths = [source.path for source in candidate.sources]
    if not paths or len(paths) > FILE_LIMIT:
        return f"the candidate has {len(paths)} files; it needs 1 to {FILE_LIMIT}"
    for path in paths:
        if not _NAME.fullmatch(path) or len(path) > 200:
            return f"the file name {path[:200]!r} is not a plain relative path (letters, digits, _ . + -)"
    if len({path.casefold() for path in paths}) < len(paths):
        return "two files have the same name"
    if nested := [path for path in paths if any(other.startswith(path + "/") for other in paths)]:
        return f"{nested[0]!r} is both a file and a folder"
    size = sum(len(source.content.encode(errors="surrogatepass")) for source in candidate.sources)
    return f"the sources have {size} bytes; the limit is {SIZE_LIMIT}" if size > SIZE_LIMIT else None


def _entry_file(task: Task, candidate: Candidate) -> str | None:
    language = candidate.spec.language
    if language not in task.languages:
        return f"the language {language} is not among this task's: {', '.join(task.languages)}"
    path, separator, symbol = candidate.spec.entry_point.partition("::")
    if not separator or not symbol.isidentifier():
        return f"the entry point {candidate.spec.entry_point!r} is not of the form file::symbol"
    if path not in {source.path for source in candidate.sources}:
        return f"the entry point's file {path!r} is not among the candidate's files"
    if not path.endswith(_SUFFIX[language]):
        return f"the entry point's file {path!r} does not end in {' or '.join(_SUFFIX[language])}"
    return None


# ---------------------------------------------------------------------------------------------- C++ and CUDA


def _cpp(candidate: Candidate) -> str | None:
    split = {source.path: lexer.tokens(source.content) for source in candidate.sources}
    for path, tokens in split.items():
        for index, token in enumerate(tokens):
            if detail := _banned(tokens, index, token):
                return f"{path}: {detail}"
    path, _, symbol = candidate.spec.entry_point.partition("::")
    return _entry_symbol(split[path], path, symbol)


def _banned(tokens: tuple[Token, ...], index: int, token: Token) -> str | None:
    if token.kind is Kind.DIRECTIVE:
        return _directive(token.text)
    if token.kind is Kind.STRING:
        if ".incbin" in token.text:
            return "an assembler directive that reads a file (.incbin)"
        return "a path under /proc" if token.text.startswith("/proc") else None
    following = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if token.kind is Kind.WORD and _CALL.fullmatch(token.text) and following == "(":
        # A member of some object is another function than the library's.
        before = tokens[index - 1].text if index else ""
        return None if before in (".", "->") else f"a call of {token.text}()"
    return None


def _directive(line: str) -> str | None:
    if included := _INCLUDE.match(line):
        if (target := _TARGET.match(included["target"])) is None:
            return f"an #include of what a macro names ({included['target'][:80]!r})"
        if target["path"].startswith("/") or ".." in target["path"].split("/"):
            return f"an #include from outside the candidate's folder ({target['path'][:80]!r})"
        return "#embed, which reads a file" if line.startswith("embed") else None
    if re.match(r"pragma\s+GCC\s+(plugin|dependency)\b", line):
        return repr(f"#{line[:80]}")
    return "an assembler directive that reads a file (.incbin)" if ".incbin" in line else None


def _entry_symbol(tokens: tuple[Token, ...], path: str, symbol: str) -> str | None:
    directives = [token.text for token in tokens if token.kind is Kind.DIRECTIVE]
    # A macro may make the linkage or the name: then the linker is asked, not we.
    if any("extern" in line or symbol in line for line in directives if line.startswith("define")):
        return None
    definitions, linked = _definitions([token for token in tokens if token.kind is not Kind.DIRECTIVE], symbol)
    if not definitions:
        return f'{path} does not define the entry point: extern "C" int {symbol}(...)'
    if not linked:
        return f'{path} defines {symbol} without extern "C", so that it cannot be found in the library'
    if definitions > 1 and not any(line.startswith("if") for line in directives):
        return f'{path} defines extern "C" {symbol} {definitions} times'  # and not in two branches of an #if
    return None


def _definitions(tokens: list[Token], symbol: str) -> tuple[int, bool]:
    """How often `symbol` is defined outside functions and classes, and whether any declaration of it has C linkage.

    Overloads without C linkage beside one with it are counted only as what they are: one definition with C linkage.
    """
    scopes: list[str] = []
    head: list[str] = []  # what the current declaration consists of so far
    plain = linked_definitions = 0
    linked = False
    for index, token in enumerate(tokens):
        text = f'"{token.text}"' if token.kind is Kind.STRING else token.text
        outside = all(scope in ("extern", "namespace") for scope in scopes)
        if token.kind is Kind.WORD and text == symbol and outside and _next_is(tokens, index, "("):
            c_linkage = "extern" in scopes or _says_extern_c(head)
            linked = linked or c_linkage
            if _is_definition(tokens, index + 1):
                plain += 1
                linked_definitions += c_linkage
        if text == "{" and token.kind is Kind.MARK:
            scopes.append(_scope(head))
            head = []
        elif text in ("}", ";") and token.kind is Kind.MARK:
            if text == "}" and scopes:
                scopes.pop()
            head = []
        else:
            head.append(text)
    return linked_definitions or plain, linked


def _scope(head: list[str]) -> str:
    if head[-2:] == ["extern", '"C"']:
        return "extern"
    return "namespace" if "namespace" in head else "other"


def _says_extern_c(head: list[str]) -> bool:
    return any(pair == ("extern", '"C"') for pair in pairwise(head))


def _next_is(tokens: list[Token], index: int, text: str) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].text == text


def _is_definition(tokens: list[Token], at: int) -> bool:
    """Whether a body follows the parameter list that opens at `at`."""
    depth = 0
    for token in tokens[at:]:
        if token.kind is not Kind.MARK:
            continue
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text in ("{", ";", "="):
            return token.text == "{"
    return False


# ---------------------------------------------------------------------------------------------- Python and Triton


def _python(task: Task, candidate: Candidate) -> str | None:
    entry, _, symbol = candidate.spec.entry_point.partition("::")
    definition = task.definition
    count = len(definition.inputs) + (len(definition.outputs) if candidate.spec.destination_passing_style else 0)
    for source in candidate.sources:
        tree = pysource.parse(source.content) if source.path.endswith(".py") else None
        if tree is None:
            continue  # the child names a syntax error, with its line, as the candidate's own failure
        if detail := pysource.banned(tree) or (pysource.entry(tree, symbol, count) if source.path == entry else None):
            return f"{source.path}: {detail}"
    return None
