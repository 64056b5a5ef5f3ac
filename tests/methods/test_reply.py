"""Reading answers: a kernel is found however it is wrapped, edits land where they belong, nothing ever raises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from methods.reply import Edit, ReplyTrouble, candidate_in, edited, edits_in, whole
from suite.types import SourceFile
from tests.suite.course import STARTER, cpp

RUN = 'extern "C" int run(int n) {\n    return n;\n}\n'
OLD = RUN.replace("return n", "return 0")
EDIT = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"

pieces = st.sampled_from(
    [
        "```",
        "~~~",
        "````cpp",
        "<<<<<<< SEARCH",
        "=======",
        ">>>>>>> REPLACE",
        "int run(",
        "<think>",
        "</think>",
        "",
        " x",
        "\r",
    ]
)
noise = st.one_of(st.text(max_size=200), st.lists(pieces, max_size=15).map("\n".join))

# ---------------------------------------------------------------------------------------------- whole files


@pytest.mark.parametrize(
    "text",
    [
        f"```cpp\n{RUN}```",
        f"Sure:\n\n```c++ main.cpp\n{RUN}```\nEnjoy.",
        f"~~~\n{RUN}~~~",
        f"````\n{RUN}````",
        f"```\n{OLD}```\nBetter:\n```\n{RUN}```",
        f"```\n{RUN}```\nCompile it:\n```sh\ng++ -O3 main.cpp\n```",
        f"```\n{RUN}```\nAnother idea, cut off:\n```\n{OLD[:30]}",
        f"```cpp\n{RUN}",
        f"<think>\n```\n{OLD}```\n</think>\n```\n{RUN}```",
        f"  ```cpp\n  {RUN.replace(chr(10), chr(10) + '  ').rstrip(' ')}  ```",
        f"```cpp\r\n{RUN.replace(chr(10), chr(13) + chr(10))}```\r\n",
        RUN,
        f"\n\n{RUN}\n\n",
    ],
)
def test_the_last_complete_kernel_is_taken_however_it_is_wrapped(text: str) -> None:
    assert whole(text, "run") == RUN


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("Use more threads. Call run() twice.", "no code block"),
        ("```cpp\nint walk(int n);\n```", "defines run"),
        ("<think>```\n" + RUN, "empty"),
        ("```\n```", "defines run"),
        ("```\nint overrun(int n) { return n; }\n```", "defines run"),
    ],
)
def test_an_answer_without_a_kernel_is_a_trouble_in_words(text: str, words: str) -> None:
    trouble = whole(text, "run")
    assert isinstance(trouble, ReplyTrouble)
    assert words in trouble.reason


def test_a_candidate_is_the_one_before_with_another_entry_file() -> None:
    before = cpp().model_copy(update={"sources": (SourceFile(path="tiles.h", content="//"), *cpp().sources)})
    after = candidate_in(f"```\n{RUN}```", before)
    assert not isinstance(after, ReplyTrouble)
    assert after.text() == RUN
    assert after.text("tiles.h") == "//"
    assert after.spec == before.spec


def test_what_cannot_be_written_as_utf8_is_replaced() -> None:
    after = candidate_in(f"```\n// \ud800\n{RUN}```", cpp())
    assert not isinstance(after, ReplyTrouble)
    assert after.text() == f"// ?\n{RUN}"
    assert after.id


# ---------------------------------------------------------------------------------------------- edits


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (EDIT.format("    return 0;", "    return n;"), RUN),
        ("```\n" + EDIT.format("    return 0;", "    return n;") + "```", RUN),
        (EDIT.format("    return 0;   ", "    return n;"), RUN),
        (EDIT.format("return 0;", "return n;"), RUN),
        (EDIT.format("\treturn 0;", "\treturn n;"), RUN),
        (EDIT.format("    return 0;", "    return 1;") + EDIT.format("    return 1;", "    return n;"), RUN),
        (EDIT.format("    return 0;\n}", "    return n;\n}"), RUN),
        (EDIT.format("    return 0;", "    return n;").replace("\n", "\r\n"), RUN),
        ("<<<<<<<SEARCH\n    return 0;\n=====\n    return n;\n>>>>>>>>REPLACE", RUN),
        ("<<<<<<< SEARCH\n    return 0;\n=======\n>>>>>>> REPLACE", OLD.replace("    return 0;\n", "")),
        (
            EDIT.format("return 0;", "if (n)\n    return n;"),
            OLD.replace("    return 0;", "    if (n)\n        return n;"),
        ),
    ],
)
def test_edits_land_where_they_belong(text: str, result: str) -> None:
    assert edited(text, OLD) == result


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "no SEARCH/REPLACE"),
        ("", "no SEARCH/REPLACE"),
        (EDIT.format("not there", "x"), "edit 1: its SEARCH part is not in the source"),
        (EDIT.format("    return 0;", "    return 1;") + EDIT.format("gone", "x"), "edit 2"),
        (EDIT.format("", "x"), "empty"),
        ("<<<<<<< SEARCH\n    return 0;\n=======\n    return n;", "breaks off"),
        ("<<<<<<< SEARCH\n    return 0;", "breaks off"),
    ],
)
def test_edits_that_cannot_be_applied_are_a_trouble_in_words(text: str, words: str) -> None:
    trouble = edited(text, OLD)
    assert isinstance(trouble, ReplyTrouble)
    assert words in trouble.reason


def test_an_edit_that_fits_in_two_places_is_not_guessed_at() -> None:
    trouble = edited(EDIT.format("x();", "y();"), "x();\nz();\nx();\n")
    assert isinstance(trouble, ReplyTrouble)
    assert "2 times" in trouble.reason


def test_an_exact_match_goes_before_a_tolerant_one() -> None:
    assert edited(EDIT.format("x();", "y();"), "  x();\nx();\n") == "  x();\ny();\n"


lines = st.lists(st.text(alphabet="ab{}; \t", max_size=6), min_size=1, max_size=8)


@given(lines, st.integers(0, 7), st.text(alphabet="cd \n", max_size=12))
def test_a_unique_line_is_replaced_and_nothing_else_changes(source: list[str], at: int, new: str) -> None:
    at %= len(source)
    source = [*source[:at], "the one line", *source[at + 1 :]]
    text = EDIT.format("the one line", new)
    assert edited(text, "\n".join(source)) == "\n".join([*source[:at], new, *source[at + 1 :]])


@given(st.lists(st.tuples(lines, lines), min_size=1, max_size=4))
def test_edits_are_read_back_as_they_were_written(pairs: list[tuple[list[str], list[str]]]) -> None:
    text = "Words.\n".join(EDIT.format("\n".join(search), "\n".join(replace)) for search, replace in pairs)
    assert edits_in(text) == tuple(Edit(tuple(search), tuple(replace)) for search, replace in pairs)


@given(noise, noise)
def test_no_answer_raises(text: str, source: str) -> None:
    assert isinstance(whole(text, "run"), str | ReplyTrouble)
    assert isinstance(edited(text, source), str | ReplyTrouble)
    candidate_in(text, cpp(STARTER), "whole")
    candidate_in(text, cpp(STARTER), "search_replace")
