"""A race on disk: its lock, its secret, its resolved card.

    <runs>/<race>/{card.json, price.json, secret (0600, hex), reveal.json, lock, trials/<trial>/{ledger.jsonl, ...}}

One driver at a time holds the lock; it goes with the process that holds it, however that ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from ray_cluster.matrix import ResolvedRace
from ray_cluster.prices import PriceSnapshot
from suite.errors import CardError, UserError
from suite.types import Frozen, TrialSpec, Workload

M = TypeVar("M", bound=Frozen)

FREE = frozenset({"card.judges", "card.trials_at_once"})
"""What may change between runs of a race: where it runs, not what is measured."""


class RaceFolder:
    """Paths and files of one race. Nothing is created before `hold`."""

    def __init__(self, runs: Path, race: str) -> None:
        self.runs = runs.absolute()
        self.race = race
        self.path = self.runs / race

    def trial(self, trial: str) -> Path:
        return self.path / "trials" / trial

    def ledger(self, trial: str) -> Path:
        return self.trial(trial) / "ledger.jsonl"

    # ------------------------------------------------------------------------------------------ the lock

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only driver of this race. Raises `UserError` if another process is."""
        self.path.mkdir(parents=True, exist_ok=True)
        with open(self.path / "lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"the race {self.race!r} is being run by process {self.driver() or 'unknown'}",
                    "one `derby run` per race at a time",
                    f"watch it with `derby status {self.race}`, end it with `derby stop {self.race}`",
                ) from error
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def driver(self) -> int | None:
        """Process id of the running driver; None when the race is not being run (a leftover number is not a driver)."""
        try:
            with open(self.path / "lock", "r+", encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = file.read().strip()
                    return int(text) if text.isdigit() else None
        except FileNotFoundError:
            pass
        return None

    def move_aside(self) -> Path | None:
        """Start afresh: the old folder goes to `<runs>/.aside/`. Raises `UserError` while a driver holds it."""
        if not self.path.exists():
            return None
        with self.hold():
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
            target = self.runs / ".aside" / f"{self.race}-{stamp}"
            target.parent.mkdir(exist_ok=True)
            self.path.rename(target)
        return target

    # ------------------------------------------------------------------------------------------ the secret

    def secret(self) -> bytes:
        """The race's 32 secret bytes, made once; only the owner can read the file."""
        path = self.path / "secret"
        if (self.path / "card.json").exists() and not path.exists():
            raise UserError(
                f"{path} is gone",
                "the secret that the race began with: its hash stands in every ledger",
                "restore the file, or start the race again with --fresh; the old folder is kept aside",
            )
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return self._read_secret(path)
        made = secrets.token_bytes(32)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(made.hex())
            file.flush()
            os.fsync(file.fileno())
        return made

    def _read_secret(self, path: Path) -> bytes:
        try:
            found = bytes.fromhex(path.read_text(encoding="ascii"))
        except ValueError:
            found = b""
        if len(found) != 32:
            raise UserError(
                f"{path} is not a race's secret",
                "64 hexadecimal digits, written when the race began",
                "start the race again with --fresh; the old folder is kept aside",
            )
        return found

    def reveal(self, heldout: dict[str, tuple[Workload, ...]]) -> None:
        """Publish the secret and what was drawn from it, so that anybody can check the commitment."""
        secret = self.secret()
        shown: dict[str, JsonValue] = {
            name: [workload.model_dump(mode="json") for workload in drawn] for name, drawn in heldout.items()
        }
        document: JsonValue = {"secret": secret.hex(), "commitment": commitment(secret), "heldout": shown}
        _write(self.path / "reveal.json", document)

    # ------------------------------------------------------------------------------------------ the card

    def price(self) -> PriceSnapshot | None:
        """The price snapshot stored when the race began."""
        return _stored(PriceSnapshot, self.path / "price.json")

    def resolved(self) -> ResolvedRace | None:
        """The resolved card stored when the race began; None before. Raises `UserError` if it is unreadable."""
        return _stored(ResolvedRace, self.path / "card.json")

    def settle(self, race: ResolvedRace) -> None:
        """Store the resolved card, or see that it is the stored one. Raises `CardError` with the difference."""
        stored = self.resolved()
        if stored is not None and (changes := differences(stored, race)):
            raise CardError(
                f"the race {self.race!r} was begun with another card:\n" + "\n".join(f"    {line}" for line in changes),
                "the card (and task, device, toolchain) that the race was begun with",
                "undo the change, or give the race another name, or begin it again with --fresh (the old one is kept)",
            )
        if race.price is not None and self.price() is None:
            _write(self.path / "price.json", race.price.model_dump(mode="json"))
        if stored is None:
            _write(self.path / "card.json", race.model_dump(mode="json"))


def commitment(secret: bytes) -> str:
    """What is published before the race: the SHA-256 of its secret."""
    return hashlib.sha256(secret).hexdigest()


def differences(old: ResolvedRace, new: ResolvedRace) -> list[str]:
    """What changed, one `key: old -> new` a line, free keys left out."""
    before, after = _facts(old), _facts(new)
    keys = [key for key in {**before, **after} if key not in FREE and before.get(key) != after.get(key)]
    return [f"{key}: {before.get(key, 'absent')} -> {after.get(key, 'absent')}" for key in keys]


def _facts(race: ResolvedRace) -> dict[str, str]:
    """Dotted key -> value in JSON, of all that decides a race; the trials follow from it."""
    return _flat("", race.model_dump(mode="json", exclude={"trials"}))


def _flat(prefix: str, value: JsonValue) -> dict[str, str]:
    if isinstance(value, dict) and value:
        return {
            name: text
            for key, item in value.items()
            for name, text in _flat(f"{prefix}.{key}".lstrip("."), item).items()
        }
    return {prefix: json.dumps(value, ensure_ascii=False)}


def races(runs: Path) -> list[RaceFolder]:
    """The races that lie under `runs`, by name."""
    cards = sorted(runs.glob("*/card.json")) if runs.is_dir() else []
    return [RaceFolder(runs, card.parent.name) for card in cards]


def specs(folder: RaceFolder) -> tuple[TrialSpec, ...]:
    """The trials of a race that was begun. Raises `UserError` if there is no such race."""
    race = folder.resolved()
    if race is None:
        known = [found.race for found in races(folder.runs)]
        raise UserError(
            f"there is no race {folder.race!r} in {folder.runs}",
            f"one of {', '.join(known)}" if known else "a race that was begun (there is none yet)",
            "give the folder with --runs, or begin a race with `derby run CARD` or `derby demo`",
        )
    return race.trials


def _stored(model: type[M], path: Path) -> M | None:
    """What this program once wrote there; None if it has not. Raises `UserError` if it is unreadable."""
    if not path.is_file():
        return None
    try:
        return model.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UserError(
            f"{path} cannot be read: {error.errors(include_url=False)[0]['msg']}",
            "what this version of derby writes there when a race begins",
            "start the race again with --fresh; the old folder is kept aside",
        ) from error


def _write(path: Path, document: JsonValue) -> None:
    """Write JSON so that a reader never meets half a file."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
