"""The shape of the house: sizes, docstrings, state and the README's tree, counted by a machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("suite", "methods", "tasks", "leaderboard", "ray_cluster", "tests")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
FILE_LIMIT, FUNCTION_LIMIT = 400, 60
Function = ast.FunctionDef | ast.AsyncFunctionDef


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[Function]:
    yield from (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, Function))


def code_lines(function: Function, lines: list[str]) -> int:
    """Lines of a function without its docstring, blank lines and comments."""
    skipped: set[int] = set()
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        skipped = set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    body = range(function.lineno, (function.end_lineno or function.lineno) + 1)
    texts = (lines[number - 1].strip() for number in body if number not in skipped)
    return sum(1 for text in texts if text and not text.startswith("#"))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= FILE_LIMIT


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_function_is_too_long(path: Path) -> None:
    lines = path.read_text().splitlines()
    long = {function.name: code_lines(function, lines) for function in functions(path)}
    assert {key: count for key, count in long.items() if count > FUNCTION_LIMIT} == {}


@pytest.mark.parametrize("path", [path for path in SOURCES if path.read_text().strip()], ids=name)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def mutable_globals(path: Path) -> list[str]:
    """Module-level names bound to a list, dict or set that is not a constant by its upper-case name."""
    found = []
    for node in ast.parse(path.read_text()).body:
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(value, ast.List | ast.Dict | ast.Set):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found += [ast.unparse(target) for target in targets if not ast.unparse(target).strip("_").isupper()]
    return [target for target in found if target != "__all__"]


@pytest.mark.parametrize("path", [path for path in SOURCES if "tests" not in path.parts], ids=name)
def test_no_module_keeps_mutable_state(path: Path) -> None:
    assert mutable_globals(path) == []
    assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Global)]


def readme_tree() -> set[str]:
    """Paths named in the README's tree (the first indented code block that starts with `suite/`)."""
    block = re.search(r"```text\n(suite/.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "README.md has a tree in a ```text block that starts with suite/"
    paths, folders = set(), [""]
    for line in block.group(1).splitlines():
        if not (match := re.match(r"( *)(\S+)", line)):
            continue
        depth = len(match.group(1)) // 2
        folders[depth + 1 :] = [folders[depth] + match.group(2)] if match.group(2).endswith("/") else []
        paths.add(folders[depth] + match.group(2))
    return paths


def test_the_readmes_tree_is_the_tree_on_disk() -> None:
    listed = readme_tree()
    missing = [path for path in listed if not (ROOT / path).exists()]
    shown = ("suite", "methods", "leaderboard", "ray_cluster")
    unlisted = [name(path) for path in SOURCES if path.parts[len(ROOT.parts)] in shown and path.name != "__init__.py"]
    assert missing == []
    assert [path for path in unlisted if path not in listed] == []
