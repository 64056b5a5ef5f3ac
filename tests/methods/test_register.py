"""The register: names to methods with all their options, mistakes answered in three parts, nothing loaded early."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import JsonValue

from methods import METHODS, describe, resolve
from suite.errors import MethodError
from suite.types import TrialSpec
from suite.workbench import Workbench

HERE = __name__


@dataclass(frozen=True)
class Third:
    """A third party's method."""

    steps: int = 3
    ratio: float = 0.5
    label: str | None = None

    uses_model: ClassVar[bool] = False

    def search(self, bench: Workbench) -> None:
        """Nothing."""


@dataclass
class Mutable:
    uses_model: ClassVar[bool] = False

    def search(self, bench: Workbench) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Silent:
    def search(self, bench: Workbench) -> None:
        """Does not say whether it uses a model."""


@dataclass(frozen=True)
class Idle:
    uses_model: ClassVar[bool] = False


@pytest.mark.parametrize(
    ("code", "words"),
    [("import sys; sys.exit(0)", "SystemExit"), ("def (", "SyntaxError"), ("raise RuntimeError('boom')", "boom")],
)
def test_a_module_that_does_not_load_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    (tmp_path / "unloadable.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MethodError, match=words):
        resolve("unloadable:Method", {})


@pytest.mark.parametrize("name", [".:Method", "..up:Method", "a/b:Method", "a b:Method"])
def test_a_target_that_is_no_dotted_name_is_no_method(name: str) -> None:
    with pytest.raises(MethodError, match="there is no method"):
        resolve(name, {})


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_resolves_with_all_its_options(name: str) -> None:
    spec = resolve(name, {})
    assert (spec.name, spec.target) == (name, METHODS[name])
    assert resolve(name, spec.options) == spec


def test_a_number_of_attempts_is_not_negative() -> None:
    with pytest.raises(MethodError, match="greater than or equal to 0"):
        resolve("k_search", {"stagnation": -3})


def test_options_are_resolved_defaults_included() -> None:
    assert resolve("best_of_n", {"give_up_after": 3}).options == {"give_up_after": 3}
    assert resolve("best_of_n", {}).options == {"give_up_after": 10}
    assert resolve("best_of_n", {}).uses_model
    assert not resolve("tpe", {}).uses_model


def test_a_third_partys_class_needs_no_registration() -> None:
    spec = resolve(f"{HERE}:Third", {"ratio": 1})
    assert spec.target == f"{HERE}:Third"
    assert spec.options == {"steps": 3, "ratio": 1.0, "label": None}
    assert not set("/: ") & set(spec.name)
    assert "name" in TrialSpec.model_fields["method"].annotation.model_fields  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("best_of_m", {}, "did you mean 'best_of_n'"),
        ("ksearch2000", {}, f"one of: {', '.join(METHODS)}"),
        ("", {}, "one of"),
        (":", {}, "one of"),
        ("a:b c", {}, "one of"),
        ("tpe", {"startupp": 3}, "did you mean 'startup'"),
        ("tpe", {"startup": "3"}, "startup = '3'"),
        ("tpe", {"startup": None}, "startup = None"),
        ("tpe", {"startup": 2.5}, "startup = 2.5"),
        (f"{HERE}:Missing", {}, "has no Missing"),
        (f"{HERE}:Mutable", {}, "frozen dataclass"),
        (f"{HERE}:Silent", {}, "uses_model"),
        (f"{HERE}:Idle", {}, "search"),
        (f"{HERE}:HERE", {}, "not a method"),
        ("json:dumps", {}, "not a method"),
        ("no_such_package_anywhere:Method", {}, "there is no module 'no_such_package_anywhere'"),
        ("methods.no_such:Method", {}, "there is no module 'methods.no_such'"),
    ],
)
def test_mistakes_are_answered_with_what_is_known(name: str, options: dict[str, JsonValue], words: str) -> None:
    with pytest.raises(MethodError) as caught:
        resolve(name, options)
    assert words in str(caught.value)
    assert caught.value.came and caught.value.expected and caught.value.todo


def test_a_missing_package_is_a_sentence_for_the_user() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from methods import describe, resolve\n"
        "from suite.errors import MethodError\n"
        "print([one.trouble for one in describe() if one.name == 'tpe'])\n"
        "try: resolve('tpe', {})\n"
        "except MethodError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs the package 'optuna'" in done.stdout
    assert "pip install optuna" in done.stdout
    assert done.stderr == ""


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    code = "import methods, sys; print([m for m in ('optuna', 'openai', 'methods.tpe') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_list_says_what_each_method_is_and_takes() -> None:
    shown = {one.name: one for one in describe()}
    assert list(shown) == list(METHODS)
    assert shown["tpe"].options == resolve("tpe", {}).options
    assert all(one.summary and not one.trouble for one in shown.values())
