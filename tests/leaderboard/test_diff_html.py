"""What a stranger wrote stays text, on either side and in either layout."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from leaderboard import diff, diff_html
from leaderboard.diff import FileDiff
from leaderboard.diff_html import LAYOUTS, Layout

HOSTILE = "x = 1; // <img src=x onerror=alert(1)><script>alert(2)</script> \u202e &amp;"
OURS = {"style", "div", "table", "colgroup", "col", "tbody", "tr", "th", "td", "mark"}


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        assert {name for name, _ in attrs} <= {"class", "style", "colspan", "aria-label"}

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def file(old: str, new: str, path: str = "kernel.cpp") -> FileDiff:
    return FileDiff(path, tuple(diff.lines(old.splitlines(), new.splitlines())), 1, 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hostile_text_makes_no_tag_and_no_attribute(layout: Layout) -> None:
    found = file(HOSTILE, HOSTILE.replace("1;", "2;"), path='"><script>')
    tags = Tags(diff_html.render(found, layout, ("<b>", "candidate 1")))
    assert tags.found <= OURS
    shown = "".join(tags.words)
    assert shown.count("<script>alert(2)</script> ⟨202E⟩ &amp;") == 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_row_is_as_wide_as_the_table(layout: Layout) -> None:
    old = "".join(f"line {number}\n" for number in range(30))
    page = diff_html.render(file(old, old.replace("line 9\n", "") + "end\n"), layout, ("the starter", "candidate 1"))
    columns = page.count("<col ") + page.count("<col>")
    for row in re.findall(r"<tr.*?</tr>", page):
        spans = re.findall(r'colspan="(\d+)"', row)
        assert (int(spans[0]) if spans else len(re.findall("<t[hd]", row))) == columns


def test_a_run_of_changes_reads_as_a_patch() -> None:
    page = diff_html.render(file("a\nb\n", "c\nd\n"), "unified", ("the starter", "candidate 1"))
    assert re.findall(r"<td>(.)</td>", page) == ["a", "b", "c", "d"]
    assert re.findall(r'class="s">(.)<', page) == ["−", "−", "+", "+"]
