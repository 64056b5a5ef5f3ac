"""The stand-in for a model that every method can be raced with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from methods import planners
from suite import tuner
from suite.model import OpenAIModel
from suite.types import ModelSpec
from suite.workbench import Model


@pytest.fixture(scope="session")
def stand_in() -> Iterator[Model]:
    with tuner.serve(planners()) as address:
        yield OpenAIModel(ModelSpec(provider="tuner", name="tuner"), address, "none")
