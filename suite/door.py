"""What is said through the one door: requests and replies shared by gateway and client, in OpenAI's words for chat."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

from suite.events import Message
from suite.types import Candidate, Frozen, Language, Prediction, Usage
from suite.workbench import Feedback, Reply

EDIT_FORMAT_HEADER = "X-Derby-Edit-Format"
BODY_LIMIT = 4 << 20
"""Bytes of a request; more is answered 413."""

HISTORY: TypeAdapter[tuple[Feedback, ...]] = TypeAdapter(tuple[Feedback, ...])


class TaskReply(Frozen):
    """GET /derby/task: what does not change during a trial."""

    brief: str
    starter: Candidate
    language: Language
    seed: int
    folder: Path
    concurrency: int


class EvaluateRequest(Frozen):
    """POST /derby/evaluate."""

    candidate: Candidate
    parent: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    note: str = ""
    predicted: Prediction | None = None


class _Lenient(BaseModel):
    """Clients send parameters we have no use for: the sampling policy is the race's."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TextPart(_Lenient):
    type: Literal["text", "input_text"]
    text: str


class ChatMessage(_Lenient):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | tuple[TextPart, ...] | None = None

    def plain(self) -> Message:
        """The message as text; "developer" is OpenAI's newer word for "system"."""
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content or ())
        return Message(role="system" if self.role == "developer" else self.role, content=text)


class ChatRequest(_Lenient):
    """POST /v1/chat/completions, what we read of it. Tools, images and several choices are refused, not ignored."""

    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1)]
    stream: bool | None = False
    n: Literal[1] | None = None
    tools: Annotated[list[JsonValue], Field(max_length=0)] | None = None
    functions: Annotated[list[JsonValue], Field(max_length=0)] | None = None


def completion(reply: Reply, model: str, identity: str) -> dict[str, Any]:
    """OpenAI's chat.completion object."""
    usage = reply.usage
    return {
        "id": identity,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": reply.text, "refusal": None},
                "finish_reason": reply.finish_reason,
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.total,
            "prompt_tokens_details": {"cached_tokens": usage.cached},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        },
    }


def chunk(whole: dict[str, Any]) -> dict[str, Any]:
    """A completion as the one chunk of a stream."""
    choice = dict(whole["choices"][0])
    choice["delta"] = choice.pop("message")
    return {**whole, "object": "chat.completion.chunk", "choices": [choice]}


def reply_of(body: dict[str, Any]) -> Reply:
    """The reply within a chat.completion object."""
    choice, usage = body["choices"][0], body["usage"]
    return Reply(
        text=choice["message"]["content"],
        finish_reason=choice["finish_reason"],
        usage=Usage(
            input=usage["prompt_tokens"],
            cached=usage["prompt_tokens_details"]["cached_tokens"],
            output=usage["completion_tokens"],
            reasoning=usage["completion_tokens_details"]["reasoning_tokens"],
        ),
    )


class Trouble(Frozen):
    """OpenAI's error object; `expected` and `todo` are the other two parts of our own sentences.

    `type` is "budget_exhausted" (402, `code` names the budget), "stopped" (503), "model_unavailable" (503),
    "invalid_request_error" (4xx) or "server_error" (500).
    """

    message: str
    type: str
    code: str | None = None
    param: str | None = None
    expected: str = ""
    todo: str = ""


class TroubleBody(Frozen):
    error: Trouble
