"""Fenced blocks: found in well-formed Markdown as CommonMark has it, and in broken text without complaint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.fences import Block, fenced

fragments = st.lists(
    st.sampled_from(["```", "````", "~~~", "``` cpp", "   ```", "text", "", "`x`", "```x```", "~~~~ c", "\t```", "\r"])
)


def test_blocks_come_in_order_with_their_info() -> None:
    text = "a\n```cpp main.cpp\nint x;\n```\nb\n~~~\ny\n~~~\n"
    assert fenced(text) == (Block("cpp main.cpp", "int x;\n", True), Block("", "y\n", True))


@pytest.mark.parametrize(
    ("text", "content", "closed"),
    [
        ("````md\n```\ninner\n```\n````", "```\ninner\n```\n", True),
        ("~~~\n```\nx\n~~~", "```\nx\n", True),
        ("```\nx\n`````", "x\n", True),
        ("```\nx\n``` not an end\n```", "x\n``` not an end\n", True),
        ("```\nx", "x\n", False),
        ("```", "", False),
        ("  ```\n  x\n    y\n  ```", "x\n  y\n", True),
        ("```\r\nx\r\n```\r\n", "x\n", True),
    ],
)
def test_only_a_matching_fence_ends_a_block(text: str, content: str, closed: bool) -> None:
    (block,) = fenced(text)
    assert (block.text, block.closed) == (content, closed)


def test_inline_code_opens_nothing() -> None:
    assert fenced("```x``` and ``y``\nz") == ()


@given(fragments)
def test_any_text_has_blocks_and_only_the_last_may_be_open(lines: list[str]) -> None:
    blocks = fenced("\n".join(lines))
    assert all(block.closed for block in blocks[:-1])


@given(st.text(alphabet="ab `~\n"), st.text(alphabet="ab\n"))
def test_what_a_long_fence_holds_comes_back_unchanged(before: str, content: str) -> None:
    inside = f"{content}\n```\n{content}\n"
    (block,) = fenced(f"`````\n{inside}`````\n")
    assert block.text == inside
    fenced(before)
