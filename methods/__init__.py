"""The register of methods: a name, where its class is, and nothing loaded before it is asked for."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from suite.errors import MethodError
from suite.strict import nearest
from suite.types import Frozen, MethodSpec

if TYPE_CHECKING:
    from suite.tuner import Planner  # it serves HTTP, which no method needs

METHODS = {
    "best_of_n": "methods.best_of_n:BestOfN",
    "k_search": "methods.ksearch:KSearch",
    "openevolve": "methods.openevolve:OpenEvolve",
    "tpe": "methods.tpe:Tpe",
}
"""Name on a race card -> "module:Class". A third party's method needs no line here: its card says "module:Class"."""

EXTRAS = ("openevolve",)
"""Packages that only one method needs; each is an extra of this project under its own name."""

PLANNERS = ("methods.ksearch.planner:reply",)
"""Where the planning halves of the stand-in for a model are ("module:function"), beside the methods they serve."""


class Description(Frozen):
    """A method as `derby list` shows it; `trouble` says what is missing here to run it, else it is empty."""

    name: str
    target: str
    summary: str = ""
    uses_model: bool = True
    options: dict[str, JsonValue] = Field(default_factory=dict)
    trouble: str = ""


def resolve(name: str, options: Mapping[str, JsonValue]) -> MethodSpec:
    """The method called `name` (of the register, or "module:Class") with all its options, defaults included.

    Raises `MethodError` for an unknown name or option, a bad value, a missing package, a class that is no method.
    """
    method = _class(name)
    fields = [field.name for field in dataclasses.fields(method)]
    for option in options:
        if option not in fields:
            raise MethodError(
                f"the method {name!r} has no option {option!r}",
                f"one of: {', '.join(fields)}" if fields else "no options at all",
                nearest(option, fields),
            )
    try:
        instance = TypeAdapter(method).validate_json(json.dumps(dict(options)), strict=True)
    except ValidationError as problem:
        flaw = problem.errors()[0]
        place = ".".join(str(part) for part in flaw["loc"]) or "its options"
        raise MethodError(
            f"the method {name!r}: {place} = {flaw['input']!r}"[:300], flaw["msg"], f"correct {place} on the race card"
        ) from None
    return MethodSpec(
        name=name if name in METHODS else name.replace(":", "."),  # it becomes part of a folder's name
        target=METHODS.get(name, name),
        options=dataclasses.asdict(instance),
        uses_model=method.uses_model,
    )


def describe() -> tuple[Description, ...]:
    """All methods of the register, in its order."""
    return tuple(_described(name) for name in METHODS)


def planners() -> tuple[Planner, ...]:
    """The stand-in planners of the register, in its order. They load no method."""
    found = []
    for target in PLANNERS:
        module, _, function = target.partition(":")
        found.append(getattr(importlib.import_module(module), function))
    return tuple(found)


def _described(name: str) -> Description:
    try:
        method, spec = _class(name), resolve(name, {})
    except MethodError as problem:
        return Description(name=name, target=METHODS[name], trouble=problem.came)
    summary = (inspect.getdoc(method) or "").split("\n")[0]
    return Description(name=name, target=spec.target, summary=summary, uses_model=spec.uses_model, options=spec.options)


def _class(name: str) -> type[Any]:
    """The method's class, checked to be one."""
    target = METHODS.get(name, name)
    module, separator, attribute = target.partition(":")
    dotted = all(part.isidentifier() for part in module.split("."))
    if not separator or not dotted or not attribute.isidentifier():
        known = ", ".join(METHODS)
        raise MethodError(f"there is no method {name!r}", f"one of: {known}; or module:Class", nearest(name, METHODS))
    found = getattr(_module(name, module), attribute, None)
    if found is None:
        raise MethodError(
            f"{module} has no {attribute}", "a class of that module", f"correct {name!r} on the race card"
        )
    frozen = getattr(getattr(found, "__dataclass_params__", None), "frozen", False)
    if not (isinstance(found, type) and frozen and isinstance(getattr(found, "uses_model", None), bool)):
        raise MethodError(
            f"{target} is not a method", "a frozen dataclass with `uses_model: ClassVar[bool]`", "see CONTRIBUTING.md"
        )
    if not callable(getattr(found, "search", None)):
        raise MethodError(f"{target} is not a method", "a class with search(self, bench)", "see CONTRIBUTING.md")
    return found


def _module(name: str, module: str) -> Any:
    with loading(name, module):
        return importlib.import_module(module)


@contextmanager
def loading(name: str, module: str) -> Iterator[None]:
    """Whatever goes wrong while `module` is imported for the method `name` becomes a `MethodError`."""
    try:
        yield
        return
    except ModuleNotFoundError as problem:
        missing = problem.name or module
    except (Exception, SystemExit) as problem:  # a module of somebody else's may do anything when it is loaded
        came = f"the method {name!r}: {module} can not be imported: {type(problem).__name__}: {problem}"
        raise MethodError(came[:500], "a module that loads without an error", "mend the module") from problem
    if module == missing or module.startswith(f"{missing}."):
        raise MethodError(
            f"the method {name!r}: there is no module {missing!r}",
            "a module on Python's path",
            "install it, or correct the name",
        )
    wanted = f"'kernel-derby[{missing}]'" if missing in EXTRAS else missing
    raise MethodError(
        f"the method {name!r} needs the package {missing!r}, which is not installed",
        "that package",
        f"pip install {wanted}",
    )
