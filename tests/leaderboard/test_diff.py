"""A diff shows every change, nothing twice, and is soon done whatever a candidate holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leaderboard import diff
from leaderboard.diff import Row
from suite.types import Candidate, SourceFile
from tests.leaderboard import canned

LINES = st.lists(st.sampled_from(["a", "b", "{", "}", "", "x = 1;"]), max_size=40)


def candidate(**files: str) -> Candidate:
    sources = tuple(SourceFile(path=f"{name}.cpp", content=text) for name, text in files.items())
    spec = canned.candidate(0).spec.model_copy(update={"entry_point": f"{next(iter(files))}.cpp::run"})
    return Candidate(spec=spec, sources=sources)


@given(LINES, LINES)
def test_no_line_is_lost(old: list[str], new: list[str]) -> None:
    rows = list(diff.lines(old, new))
    if old == new:
        assert rows == []
        return
    skipped = sum(row.skipped for row in rows)
    before = [row.before for row in rows if row.before]
    after = [row.after for row in rows if row.after]
    assert len(before) + skipped == len(old) and len(after) + skipped == len(new)
    assert all(old[side.number - 1] == side.text for side in before)
    assert all(new[side.number - 1] == side.text for side in after)
    assert [side.number for side in after] == sorted(side.number for side in after)


@given(LINES, LINES)
def test_what_is_called_the_same_is_the_same(old: list[str], new: list[str]) -> None:
    for row in diff.lines(old, new):
        if row.kind == "same":
            assert row.before and row.after and row.before.text == row.after.text


def test_far_from_a_change_lines_are_counted_and_not_shown() -> None:
    old = [f"line {number}" for number in range(100)]
    rows = list(diff.lines(old, [*old[:50], "new", *old[50:]]))
    assert [row.kind for row in rows] == ["gap", *["same"] * 3, "added", *["same"] * 3, "gap"]
    assert (rows[0].skipped, rows[-1].skipped) == (47, 47)


def test_the_words_that_differ_are_marked() -> None:
    (row,) = diff.lines(["constexpr int kWidth = 4;"], ["constexpr int kWidth = 16;"])
    assert row.before and row.after
    assert [row.before.text[a:b] for a, b in row.before.spans] == ["4"]
    assert [row.after.text[a:b] for a, b in row.after.spans] == ["16"]


def test_lines_with_nothing_in_common_are_not_marked() -> None:
    (row,) = diff.lines(["return 0;"], ["// vectorised by hand"])
    assert row.kind == "changed" and row.before and row.after and not row.before.spans + row.after.spans


def test_entry_files_are_compared_under_whatever_names() -> None:
    (file,) = diff.compare(candidate(baseline="int a;\n"), candidate(kernel="int b;\n"))
    assert file.path == "baseline.cpp → kernel.cpp"
    assert (file.added, file.removed) == (1, 1)


def test_every_file_of_either_side_is_told_changed_ones_first() -> None:
    before = candidate(kernel="int a;\n", gone="x\n", kept="k\n")
    after = candidate(kernel="int a;\n", new="y\n", kept="k\n")
    files = diff.compare(before, after)
    assert {(file.path, file.added, file.removed) for file in files} == {
        ("kernel.cpp", 0, 0),
        ("new.cpp", 1, 0),
        ("gone.cpp", 0, 1),
        ("kept.cpp", 0, 0),
    }
    assert [bool(file.rows) for file in files] == [True, True, False, False]


def test_a_file_made_to_be_slow_is_not() -> None:
    old, new = ["}"] * 1400, [*["}"] * 3, "y"] * 350  # 45 s if all pairs of equal lines are looked at
    rows: list[Row] = list(diff.lines(old, new))
    assert sum(row.after is not None for row in rows) + sum(row.skipped for row in rows) == len(new)
