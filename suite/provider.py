"""What an OpenAI-compatible server's refusals mean: which pass by themselves, and what the user must mend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import openai

from suite.errors import ModelError

OPENAI_URL = "https://api.openai.com/v1"
RETRY_AFTER_LIMIT_S = 120.0
"""A server may ask for more patience than this; it does not get it."""

_OPTIONAL = ("reasoning_effort", "seed", "temperature", "max_completion_tokens", "max_tokens")
_CONTEXT = re.compile(r"context.?length|context.?(?:window|size)|prompt is too long|too many (?:input )?tokens", re.I)
_NO_MODEL = re.compile(
    r"model.{0,80}(?:not (?:be )?found|does ?n[o']t exist|unknown|invalid)|invalid model", re.I | re.S
)


def checked(base_url: str) -> str:
    """The address without a slash at its end. Raises `ModelError` if it is none, or holds a secret."""
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname, parts.port  # a port that is no number raises here
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ModelError("the model's address is not a URL", "http://HOST:PORT/v1 or https://...", "correct `base_url`")
    if "@" in parts.netloc or parts.query:  # ledgers and logs show addresses
        raise ModelError(
            "the model's address holds a user name or password, or a query", "the bare address", "use OPENAI_API_KEY"
        )
    return base_url.rstrip("/")


def is_openai(base_url: str) -> bool:
    return (urlsplit(base_url).hostname or "").endswith("openai.com")


def scrubbed(text: str, api_key: str) -> str:
    """The text without the key or anything that looks like one, and short enough for an error."""
    if api_key:
        text = text.replace(api_key, "***")
    return re.sub(r"\b(sk|key|Bearer)[-_ ][\w*.\-]{6,}", r"\1-***", text)[:500]


def refused_parameter(error: openai.APIStatusError, request: Mapping[str, object]) -> str | None:
    """Which of the optional parameters sent the server rejects, None if the refusal is about something else."""
    sent = [name for name in _OPTIONAL if name in request]
    if error.param in sent:
        return error.param
    text = _words(error)
    if _CONTEXT.search(text):
        return None
    return next((name for name in sent if re.search(rf"(?<!\w){name}(?!\w)", text)), None)


def refusal(error: openai.APIError) -> str | None:
    """Why the server refuses this one prompt, None if the error is about something else."""
    if not isinstance(error, openai.APIStatusError) or error.status_code not in (400, 413, 422):
        return None
    words = _words(error)
    if error.status_code == 413 or error.code == "context_length_exceeded" or _CONTEXT.search(words):
        return "the prompt is too long for the model"
    filtered = error.code in ("content_filter", "content_policy_violation", "invalid_prompt")
    return "the provider's filter rejected the prompt" if filtered else None


def explain(error: openai.APIError, model: str, address: str, api_key: str) -> ModelError | None:
    """The refusal as an error for the user, None if asking again may help."""
    if isinstance(error, openai.APIConnectionError):
        return None
    if not isinstance(error, openai.APIStatusError):
        return not_our_protocol(address)
    status, words = error.status_code, _words(error)
    said = scrubbed(words, api_key)
    if status == 404 or error.code == "model_not_found" or (status == 400 and _NO_MODEL.search(words)):
        return ModelError(
            f"{address} has no model {model!r} ({status})",
            "a model this server offers to this key",
            "correct the model's name or `base_url`",
        )
    if status == 401:  # what the server says here quotes parts of the key
        return ModelError(
            f"{address} refused the key (401)", "a valid key", "set OPENAI_API_KEY to a key for this server"
        )
    if status == 403:
        return ModelError(f"{address} forbids this key {model} (403)", "a key with access", "set OPENAI_API_KEY to one")
    if status == 402 or error.code in ("insufficient_quota", "billing_hard_limit_reached"):
        return ModelError(f"the account at {address} is out of credit ({status})", "credit", "top it up, then go on")
    if status in (408, 409, 425, 429) or status >= 500:
        return None
    return ModelError(f"{address} refused the request ({status}): {said}", "a request it accepts", "see what it says")


def unreachable(address: str) -> ModelError:
    return ModelError(
        f"no model server answers at {address}",
        "an OpenAI-compatible server that this machine can reach",
        "start it, or correct `base_url` on the race card or OPENAI_BASE_URL",
    )


def not_our_protocol(address: str) -> ModelError:
    return ModelError(
        f"{address} answered, but not with a chat completion",
        "an OpenAI-compatible address, usually ending in /v1",
        "correct `base_url` on the race card or OPENAI_BASE_URL",
    )


def retry_after_s(error: openai.APIError) -> float:
    """Seconds the server asks us to wait (0 if it does not say), at most `RETRY_AFTER_LIMIT_S`."""
    if not isinstance(error, openai.APIStatusError):
        return 0.0
    value = error.response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    # "nan" is a float too, and compares false with everything.
    return min(seconds, RETRY_AFTER_LIMIT_S) if seconds > 0 else 0.0


def _words(error: openai.APIStatusError) -> str:
    """All that the server said, whatever its shape."""
    return f"{error.message} {error.body if error.body is not None else ''}"
