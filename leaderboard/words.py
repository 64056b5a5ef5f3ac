"""How numbers and conditions are put into words: three significant digits, units, one vocabulary on every surface."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import UTC, datetime

from suite.score import Estimate
from suite.types import Budget, MethodSpec, ModelSpec, Status

UNKNOWN = "unknown"
NONE = "–"

ENDINGS: dict[Status, str] = {
    Status.PASSED: "built, right on every workload, timed",
    Status.COMPILE_ERROR: "does not build",
    Status.RUNTIME_ERROR: "crashed, left early or returned an error",
    Status.TIMEOUT: "took longer than the task allows",
    Status.INCORRECT_SHAPE: "an output has the wrong shape",
    Status.INCORRECT_DTYPE: "an output has the wrong number type",
    Status.INCORRECT_NUMERICAL: "an output is outside the tolerance",
    Status.OUT_OF_BOUNDS: "wrote outside its outputs",
    Status.INPUT_MUTATED: "changed its inputs",
    Status.POLICY: "refused: breaks a rule of the race",
}


def three(value: float | None) -> str:
    """Three significant digits, without exponent: 0.0123, 1.23, 123, 12300."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    # Rounded first, so that 0.9996 is 1.00 and not 1.000.
    value = round(value, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def interval(estimate: Estimate | None) -> str:
    """`1.23 [1.20, 1.26]`; without brackets where no interval can be given."""
    if estimate is None:
        return NONE
    if estimate.low is None or estimate.high is None or estimate.value == 0:
        return three(estimate.value)
    return f"{three(estimate.value)} [{three(estimate.low)}, {three(estimate.high)}]"


def tokens(count: float) -> str:
    """`950`, `12.3 k`, `4.56 M`."""
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if count >= size:
            return three(count / size) + unit
    return three(count)


def usd(amount: float | None) -> str:
    """US dollars; a model without a known price is said to be unknown, not free."""
    return UNKNOWN if amount is None else f"${amount:.2f}"


def cents(amount: float | None) -> str:
    """US dollars of a single call, in three digits: `$0.0123`."""
    return UNKNOWN if amount is None else f"${three(amount)}"


def seconds(duration: float) -> str:
    """`42 s`, `3 min 20 s`, `1 h 5 min`."""
    whole = round(duration)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def moment(time: str) -> str:
    """An ISO time as `2026-11-30 14:05 UTC`."""
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def day(time: str) -> str:
    """An ISO time as `2026-11-30`, in UTC."""
    return moment(time)[:10]


def model(spec: ModelSpec | None) -> str:
    """`gpt-9 (high)`; stand-ins and methods that ask nobody are `no LLM`."""
    if spec is None or not spec.is_llm:
        return "no LLM"
    return f"{spec.name} ({spec.effort})" if spec.effort else spec.name


def budget(limits: Budget) -> str:
    """`16 evaluations, 1.00 M tokens, $5.00, 10 min 0 s`."""
    parts = (
        None if limits.evaluations is None else f"{limits.evaluations} evaluations",
        None if limits.tokens is None else f"{tokens(limits.tokens)} tokens",
        None if limits.usd is None else usd(limits.usd),
        None if limits.wall_s is None else seconds(limits.wall_s),
    )
    return ", ".join(part for part in parts if part)


def options(method: MethodSpec) -> str:
    """`width 4, patience 3`, in order of name; empty for a method without options."""
    return ", ".join(f"{name} {value}" for name, value in sorted(method.options.items()))


def plain(text: str) -> str:
    """Text of a stranger, safe to look at: controls and marks that turn the reading direction become visible."""
    return "".join(letter if _harmless(letter) else f"⟨{ord(letter):04X}⟩" for letter in text)


_MARKUP = re.compile(r"[\\`*_{}\[\]<>#$~:|!&]|^[-+=]|(?<=^\d)[.)]")


def literal(text: str) -> str:
    """Text of a stranger, in one line, for a place that reads Markdown: all of it stands there as it was written."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(plain(text).split()))


def _harmless(letter: str) -> bool:
    return letter in "\n\t" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co")
