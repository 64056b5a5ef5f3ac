"""The base of every record, digests, and the words that name a kind."""

from __future__ import annotations

import hashlib
import json
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, JsonValue

TIMING_PROTOCOL = "cpu-1"
"""Version of how the cpu lane is timed; rankings never mix versions."""


class Frozen(BaseModel):
    """Base of every record: immutable, and an unknown key is an error rather than a typo that passes."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def digest_of(value: JsonValue) -> str:
    """SHA-256 (hex) of a JSON value in canonical form (sorted keys, no spaces)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Split(StrEnum):
    """What a workload is for."""

    SEARCH = "search"  # timed, shown to methods
    CHECK = "check"  # small, untimed, undisclosed; run in every evaluation
    HELDOUT = "heldout"  # timed, champions only, drawn for each edition


class Tier(StrEnum):
    """How thoroughly a candidate is timed."""

    SEARCH = "search"  # one launch, short
    CHAMPION = "champion"  # several launches, long, interval over launches


class Language(StrEnum):
    CPP = "cpp"
    PYTHON = "python"
    TRITON = "triton"
    CUDA = "cuda"


class StarterKind(StrEnum):
    PLAIN = "plain"
    EXPERT = "expert"


class Status(StrEnum):
    """How an evaluation ended: FlashInfer-Bench's names and the endings it lacks. Only PASSED has a speed."""

    PASSED = "PASSED"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    INPUT_MUTATED = "INPUT_MUTATED"
    POLICY = "POLICY"


class DType(StrEnum):
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    BOOL = "bool"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return {"float32": 4, "int32": 4, "int64": 8, "float16": 2, "bfloat16": 2, "int16": 2}.get(self.value, 1)
