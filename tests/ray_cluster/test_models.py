"""A model is opened only with the key it needs, and keys go nowhere else."""

from __future__ import annotations

import pytest

from ray_cluster.models import check_key, keys_in, open_model
from suite.errors import ModelError
from suite.events import Message
from suite.types import ModelSpec

OPENAI = ModelSpec(provider="openai", name="some-model")


@pytest.fixture(autouse=True)
def scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def test_only_keys_are_taken_from_the_environment() -> None:
    assert keys_in({"OPENAI_API_KEY": "secret", "HOME": "/root"}) == {"OPENAI_API_KEY": "secret"}
    assert keys_in({"OPENAI_API_KEY": ""}) == {}


def test_a_provider_wants_its_key() -> None:
    with pytest.raises(ModelError, match="OPENAI_API_KEY"):
        check_key(OPENAI, {})
    check_key(OPENAI, {"OPENAI_API_KEY": "secret"})
    with pytest.raises(ModelError), open_model(OPENAI, {}):
        pass


def test_an_address_of_ones_own_may_want_none(monkeypatch: pytest.MonkeyPatch) -> None:
    check_key(OPENAI.model_copy(update={"base_url": "http://127.0.0.1:8000/v1"}), {})
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    check_key(OPENAI, {})


def test_a_stand_in_or_no_model_wants_none() -> None:
    check_key(None, {})
    check_key(ModelSpec(provider="tuner", name="tuner"), {})
    with open_model(None, {}) as model:
        assert model is None


def test_the_tuner_answers_while_it_is_open() -> None:
    prompt = "```cpp\nconstexpr int kWidth = 4;  // tune: width in {1, 4}\n```"
    with open_model(ModelSpec(provider="tuner", name="tuner"), {}) as model:
        assert model is not None
        message = Message(role="user", content=prompt)
        reply = model.chat([message], max_output_tokens=500, seed=1, edit_format="whole")
    assert "kWidth = 1" in reply.text


def test_an_error_does_not_show_the_key() -> None:
    with open_model(OPENAI, {"OPENAI_API_KEY": "very-secret"}) as model:
        assert "very-secret" not in repr(model)
