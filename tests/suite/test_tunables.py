"""Tunables: found where they are, written back without touching anything else, refused when they make no sense."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.errors import TaskError
from suite.tunables import Tunable, find, render

CPP = """\
#include <cstdint>
constexpr int kHeads = 4;  // tune: heads_per_pass in {1, 2, 4, 8}
constexpr bool kOnline = true; // tune: online in {false, true}
#define UNROLL 2  // tune: unroll in {1, 2}
constexpr float kSlack = 1e-3f;// tune: slack in {1e-3f, 0.5f}
constexpr auto kWay = Way::split;   // tune: way in {Way::split, Way::whole}
int untouched = 4;  // tuned by hand
"""
PYTHON = """\
BLOCK = 64  # tune: block in {32, 64, 128}
MODE = reduce.tree  # tune: mode in {reduce.tree, reduce.line}
def run(x, BLOCK: int = 64, depth: int = -1,  # tune: depth in {-1, 3}
        y=0): ...
"""

names = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
spellings = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(0, 100, allow_nan=False).map(lambda value: f"{value:.3f}"),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}(::[a-z]{1,4})?", fullmatch=True),
    st.sampled_from(["true", "false", "0x1F", "8u", "1.5f"]),
)
dials = st.dictionaries(names, st.lists(spellings, min_size=2, max_size=5, unique=True), min_size=1, max_size=5)


def source_of(dials: dict[str, list[str]], picked: dict[str, str], python: bool) -> str:
    if python:
        lines = [
            f"{name.upper()} = {picked[name]}  # tune: {name} in {{{', '.join(vs)}}}" for name, vs in dials.items()
        ]
    else:
        lines = [f"auto k_{n} = {picked[n]};  // tune: {n} in {{{', '.join(vs)}}}" for n, vs in dials.items()]
    return "before\n" + "\nbetween\n".join(lines) + "\nafter"


def test_every_kind_of_value_is_found_on_its_line() -> None:
    found = {dial.name: dial for dial in find(CPP)}
    assert found["heads_per_pass"] == Tunable("heads_per_pass", ("1", "2", "4", "8"), "4", 2)
    assert found["online"].current == "true"
    assert found["unroll"].current == "2"
    assert found["slack"].values == ("1e-3f", "0.5f")
    assert found["way"].current == "Way::split"
    assert len(found) == 5
    assert [(dial.name, dial.current) for dial in find(PYTHON)] == [
        ("block", "64"),
        ("mode", "reduce.tree"),
        ("depth", "-1"),
    ]


def test_a_source_without_tune_comments_has_no_tunables() -> None:
    assert find("int main() { return 0; }  // fine-tune: nothing") == ()
    assert render("int x = 1;\r\n", {}) == "int x = 1;\r\n"


@given(dials, st.booleans(), st.data())
def test_what_is_rendered_is_found_again(dials: dict[str, list[str]], python: bool, data: st.DataObject) -> None:
    before = {name: data.draw(st.sampled_from(values)) for name, values in dials.items()}
    after = {name: data.draw(st.sampled_from(values)) for name, values in dials.items()}
    source = source_of(dials, before, python)
    changed = render(source, after)
    assert {dial.name: dial.current for dial in find(changed)} == after
    assert changed == source_of(dials, after, python)
    assert render(changed, before) == source


def test_line_ends_and_everything_else_stay_as_they_were() -> None:
    source = CPP.replace("\n", "\r\n").removesuffix("\r\n")
    assert render(source, {"heads_per_pass": 8}) == source.replace("kHeads = 4", "kHeads = 8")


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("heads_per_pass", 8, "kHeads = 8;"),
        ("heads_per_pass", "8", "kHeads = 8;"),
        ("online", False, "kOnline = false;"),
        ("slack", 0.5, "kSlack = 0.5f;"),
        ("slack", 0.001, "kSlack = 1e-3f;"),
        ("way", "Way::whole", "kWay = Way::whole;"),
    ],
)
def test_values_may_be_given_as_meant_or_as_spelled(name: str, value: str | float | bool, line: str) -> None:
    assert line in render(CPP, {name: value})


@pytest.mark.parametrize(("name", "value"), [("heads_per_pass", 3), ("heads_per_pass", True), ("nothing", 1)])
def test_inadmissible_values_and_unknown_names_are_refused(name: str, value: int) -> None:
    with pytest.raises(TaskError):
        render(CPP, {name: value})


@pytest.mark.parametrize(
    "line",
    [
        "int k = 3;  // tune: k in {1, 2}",
        "int k = 1;  // tune: k in {1}",
        "int k = 1;  // tune: k in {1, 1}",
        "int k = 1;  // tune: k in {1, }",
        "int k = 1;  // tune: k of {1, 2}",
        "int k = 1;  // tune:",
        "int k = f(1);  // tune: k in {1, 2}",
        "// tune: k in {1, 2}",
        "int k = 1;  // tune: k in {1, 2}\nint l = 1;  // tune: k in {1, 2}",
        "int k = 1;  // tune: k in {1, system(2)}",
    ],
)
def test_a_comment_that_makes_no_sense_is_named_with_its_line(line: str) -> None:
    with pytest.raises(TaskError, match=r"^line \d"):
        find(line)


@pytest.mark.parametrize(
    "code", ["a =1" + " " * 100_000 + "x", "a =" + "1" * 100_000 + "x", "a=0x" + "f" * 100_000 + "!"]
)
def test_a_long_line_is_read_in_no_time(code: str) -> None:
    began = time.monotonic()
    with pytest.raises(TaskError, match="no value before the comment"):
        find(f"{code} // tune: a in {{1, 2}}")
    assert time.monotonic() - began < 1
