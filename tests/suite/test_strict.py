"""Whatever is wrong with a TOML file, the error says what came, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from suite.errors import CardError, TaskError
from suite.strict import nearest, parse, read_toml
from suite.types import Frozen


class Leaf(Frozen):
    size: int
    colour: str = "green"


class Tree(Frozen):
    leaves: tuple[Leaf, ...] = ()
    named: dict[str, Leaf] = Field(default_factory=dict)
    top: Leaf | None = None


def flaw(data: dict[str, object]) -> TaskError:
    with pytest.raises(TaskError) as caught:
        parse(Tree, data, "tree.toml", TaskError)
    return caught.value


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"leaves": [{"size": 1}, {"size": 1, "color": "red"}]}, "leaves.1.color"),
        ({"named": {"oak": {"size": 1, "color": "red"}}}, "named.oak.color"),
        ({"top": {"size": 1, "color": "red"}}, "top.color"),
    ],
)
def test_an_unknown_key_is_named_with_its_place_the_known_ones_and_the_nearest(
    data: dict[str, object], place: str
) -> None:
    error = flaw(data)
    assert error.came == f"tree.toml: unknown key {place}"
    assert error.expected == "one of size, colour"
    assert error.todo == "did you mean 'colour'?"


def test_an_unknown_key_at_the_top_is_told_from_the_top_level_keys() -> None:
    assert flaw({"leafs": []}).expected == "one of leaves, named, top"


def test_a_missing_key_is_named() -> None:
    error = flaw({"leaves": [{}]})
    assert (error.came, error.todo) == ("tree.toml: leaves.0.size is missing", "add it")


def test_a_wrong_value_is_shown() -> None:
    assert "leaves.0.size = 'big'" in flaw({"leaves": [{"size": "big"}]}).came


def test_what_is_right_is_returned() -> None:
    assert parse(Tree, {"top": {"size": 3}}, "tree.toml", TaskError).top == Leaf(size=3)


def test_a_word_like_nothing_known_is_to_be_removed() -> None:
    assert nearest("zzz", ["size", "colour"]) == "remove 'zzz'"


def test_files_that_are_missing_or_no_toml_raise_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(CardError, match="there is no"):
        read_toml(tmp_path / "card.toml", CardError)
    (tmp_path / "card.toml").write_text("methods = [")
    with pytest.raises(CardError, match="is not TOML"):
        read_toml(tmp_path / "card.toml", CardError)
    (tmp_path / "card.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CardError, match="can not be read"):
        read_toml(tmp_path / "card.toml", CardError)
    (tmp_path / "card.toml").write_text("a = 1")
    assert read_toml(tmp_path / "card.toml", CardError) == {"a": 1}
