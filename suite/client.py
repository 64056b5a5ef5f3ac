"""The workbench as a method's process has it: a thin client of the gateway."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from suite.door import EDIT_FORMAT_HEADER, HISTORY, EvaluateRequest, TaskReply, TroubleBody, reply_of
from suite.errors import BudgetExhausted, InfraError, ModelError, Stopped
from suite.events import Message
from suite.types import Candidate, Language, Prediction
from suite.workbench import EditFormat, Feedback, Left, Reply

GATEWAY = "DERBY_GATEWAY"
"""Environment variable with the gateway's address; "/v1" beneath it is OpenAI's protocol."""

TOKEN = "DERBY_TOKEN"
"""Environment variable with the bearer token."""

NO_TIMEOUT = httpx2.Timeout(None)
"""A call lasts as long as what it asks for; a gateway that dies takes this process with it."""


class GatewayBench:
    """A `Workbench` over loopback HTTP. Thread-safe."""

    def __init__(self, url: str, token: str) -> None:
        """`url` is the gateway's address; asks it at once for what does not change. Raises `InfraError`."""
        self._http = httpx2.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=NO_TIMEOUT,
            trust_env=False,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=32),
        )
        self.port: int = urlsplit(url).port or 80
        try:
            task = TaskReply.model_validate_json(self._call("GET", "/derby/task").content)
        except BaseException:
            self.close()
            raise
        self.brief: str = task.brief
        self.starter: Candidate = task.starter
        self.language: Language = task.language
        self.seed: int = task.seed
        self.folder: Path = task.folder
        self.concurrency: int = task.concurrency

    @classmethod
    def from_environment(cls) -> GatewayBench:
        """The bench of this process's trial: every method has its address and token in the environment."""
        return cls(os.environ[GATEWAY], os.environ[TOKEN])

    def evaluate(
        self, candidate: Candidate, parent: str | None = None, note: str = "", predicted: Prediction | None = None
    ) -> Feedback:
        """See `Workbench.evaluate`. Raises `ValueError` for what the gateway can not read."""
        request = EvaluateRequest(candidate=candidate, parent=parent, note=note, predicted=predicted)
        response = self._call("POST", "/derby/evaluate", content=request.model_dump_json())
        return Feedback.model_validate_json(response.content)

    def chat(self, messages: Sequence[Message], edit_format: EditFormat = "whole") -> Reply:
        """See `Workbench.chat`."""
        body = {"model": "", "messages": [message.model_dump(mode="json") for message in messages]}
        headers = {EDIT_FORMAT_HEADER: edit_format}
        return reply_of(self._call("POST", "/v1/chat/completions", json=body, headers=headers).json())

    def left(self) -> Left:
        """See `Workbench.left`."""
        return Left.model_validate_json(self._call("GET", "/derby/left").content)

    def history(self) -> tuple[Feedback, ...]:
        """See `Workbench.history`."""
        return HISTORY.validate_json(self._call("GET", "/derby/history").content)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> GatewayBench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _call(
        self,
        method: str,
        path: str,
        content: str | None = None,
        json: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        try:
            response = self._http.request(method, path, content=content, json=json, headers=headers)
        except httpx2.TransportError as failure:
            raise InfraError(f"the gateway does not answer: {failure}") from failure
        if response.status_code != 200:
            _refuse(response)
        return response


def _refuse(response: httpx2.Response) -> NoReturn:
    try:
        trouble = TroubleBody.model_validate_json(response.content).error
    except ValidationError:
        raise InfraError(f"the gateway answered {response.status_code}") from None
    match trouble.type:
        case "budget_exhausted":
            raise BudgetExhausted(trouble.code or "unknown")
        case "stopped":
            raise Stopped(trouble.message)
        case "model_unavailable":
            raise ModelError(trouble.message, trouble.expected, trouble.todo)
        case "invalid_request_error":
            raise ValueError(trouble.message)
        case _:
            raise InfraError(trouble.message)
