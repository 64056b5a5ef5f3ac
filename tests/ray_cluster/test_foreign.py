"""A third party's method is resolved where it can neither see nor end anything of the race's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ray_cluster.foreign import resolve_method
from suite.errors import MethodError
from tests.ray_cluster.nosy import SECRET


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-secret-key")
    SECRET.write_text("a secret seed")
    yield
    SECRET.unlink()


def test_a_foreign_module_sees_neither_keys_nor_files_nor_the_driver(secret: None) -> None:
    spec = resolve_method("tests.ray_cluster.nosy:Nosy", {})
    assert spec.options == {"seen": ""}
    assert (spec.target, spec.name, spec.uses_model) == (
        "tests.ray_cluster.nosy:Nosy",
        "tests.ray_cluster.nosy.Nosy",
        False,
    )


def test_options_are_checked_over_there() -> None:
    with pytest.raises(MethodError, match="has no option 'scen'") as error:
        resolve_method("tests.ray_cluster.nosy:Nosy", {"scen": "x"})
    assert error.value.todo == "did you mean 'seen'?"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tests.ray_cluster.leaver:Method", "ended its process"),
        ("no_such_package.module:Class", "no module 'no_such_package'"),
        ("tests.ray_cluster.nosy:Nobody", "has no Nobody"),
        ("tpee", "there is no method 'tpee'"),
    ],
)
def test_a_method_that_cannot_be_had_is_said_in_three_parts(name: str, words: str) -> None:
    with pytest.raises(MethodError, match=words) as error:
        resolve_method(name, {})
    assert error.value.expected and error.value.todo


def test_ours_are_resolved_here() -> None:
    assert resolve_method("tpe", {"patience": 3}).options["patience"] == 3
