"""Opens the model of a race: the tuner on loopback, or a provider with the key that the environment holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from methods import planners
from suite import tuner
from suite.errors import ModelError
from suite.model import OpenAIModel
from suite.types import ModelSpec
from suite.workbench import Model

KEYS = {"openai": "OPENAI_API_KEY"}
"""Provider -> environment variable of its key."""
ADDRESS = "OPENAI_BASE_URL"
"""Where the client goes when the card names no address; one of the user's own may want no key."""
NO_KEY = "none"
"""Sent to an address of the user's own that asks for no key."""


def keys_in(environment: Mapping[str, str]) -> dict[str, str]:
    """The keys among the environment variables; they go to trials and to nobody else."""
    return {name: environment[name] for name in KEYS.values() if environment.get(name)}


def check_key(spec: ModelSpec | None, keys: Mapping[str, str]) -> None:
    """Raises `ModelError` if the model's provider wants a key that is not there. Asks nobody."""
    if spec is None or spec.base_url is not None or ADDRESS in os.environ:
        return
    name = KEYS.get(spec.provider)
    if name is not None and name not in keys:
        raise ModelError(
            f"the model {spec.name!r} of {spec.provider} needs a key, and {name} is not set",
            f"the environment variable {name}, or base_url in the card's [model] for an address that needs none",
            f'set it (export {name}=...), or race the stand-in that needs none: provider = "tuner"',
        )


@contextmanager
def open_model(spec: ModelSpec | None, keys: Mapping[str, str]) -> Iterator[Model | None]:
    """The model that answers for `spec`, for as long as the block; None for a method that asks none."""
    if spec is None:
        yield None
    elif spec.provider == "tuner":
        with tuner.serve(planners()) as address:
            yield OpenAIModel(spec, address, NO_KEY)
    else:
        check_key(spec, keys)
        yield OpenAIModel(spec, spec.base_url, keys.get(KEYS[spec.provider], NO_KEY))
