"""Following a race shows each line once, waits for half-written ones, and is hurt by no view."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from ray_cluster.follow import Follower, Standing, Tail
from ray_cluster.progress import State
from ray_cluster.run import Race
from suite.events import Event
from tests.ray_cluster.events import begun, raced
from tests.ray_cluster.stage import card

SILENT = {"methods": ["tpe"], "model": None}
"""A method that asks no model."""


class Witness:
    """A view that remembers what it was told."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []

    def record(self, trial: str, seq: int, event: Event) -> None:
        self.lines.append((trial, seq))


class Broken:
    """A view that always fails."""

    def record(self, trial: str, seq: int, event: Event) -> None:
        raise ConnectionError("no server")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Race:
    """A race of one trial, finished; only read here."""
    race = begun(tmp_path_factory.mktemp("runs"), card(**SILENT))
    raced(race.orders()[0])
    return race


def test_a_tail_gives_every_line_once_and_only_when_it_is_whole(tmp_path: Path, done: Race) -> None:
    whole = done.folder.ledger(done.resolved.trials[0].id).read_bytes()
    growing = tmp_path / "growing.jsonl"
    tail = Tail(growing)
    assert tail.new() == []
    cut = whole.index(b"\n") + 20
    growing.write_bytes(whole[:cut])
    assert [entry.seq for entry in tail.new()] == [0]
    assert tail.new() == []
    growing.write_bytes(whole)
    rest = [entry.seq for entry in tail.new()]
    assert rest == list(range(1, whole.count(b"\n")))


def test_a_tail_passes_over_what_is_no_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"not json\n{}\n")
    assert Tail(path).new() == []


def test_a_ledger_that_can_not_be_read_has_no_lines(tmp_path: Path) -> None:
    assert Tail(tmp_path).new() == []
    assert Tail(tmp_path / "none").new() == []


def test_off_a_terminal_a_race_is_told_in_plain_lines(tmp_path: Path) -> None:
    race = begun(tmp_path, card(**SILENT))
    standing = Standing(race.folder, race.resolved.trials)
    text, witness = io.StringIO(), Witness()
    console = Console(file=text, force_terminal=False, width=200)
    with Follower(standing, console, (witness,)):
        raced(race.orders()[0])
    trial = race.resolved.trials[0].id
    assert standing.trials[trial].state is State.FINISHED
    assert witness.lines == [(trial, seq) for seq in range(standing.trials[trial].lines)]
    lines = text.getvalue().splitlines()
    assert any("starter" in line for line in lines) and any("finished" in line for line in lines)
    assert "\x1b" not in text.getvalue()


def test_what_was_done_before_reaches_the_views_but_is_not_told_again(done: Race) -> None:
    standing = Standing(done.folder, done.resolved.trials)
    text, witness = io.StringIO(), Witness()
    with Follower(standing, Console(file=text, force_terminal=False), (witness,)):
        pass
    assert text.getvalue() == ""
    assert len(witness.lines) == standing.rows[0].lines > 0


def test_a_broken_view_does_not_hurt_the_others(done: Race) -> None:
    standing = Standing(done.folder, done.resolved.trials)
    witness = Witness()
    with Follower(standing, Console(file=io.StringIO(), force_terminal=False), (Broken(), witness)):
        pass
    assert len(witness.lines) == standing.rows[0].lines


def test_on_a_terminal_there_is_one_table(done: Race) -> None:
    standing = Standing(done.folder, done.resolved.trials)
    text = io.StringIO()
    with Follower(standing, Console(file=text, force_terminal=True, width=160)) as follower:
        assert follower.eta_s() is None
    assert "1 of 1 trials finished" in text.getvalue()
