"""Foreign load is what was neither idle nor ours."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from suite.judge.busy import ForeignLoad, idle_s

STAT = "cpu  9 9 9 900 90\ncpu0 1 2 3 400 50 6 7 0\ncpu1 1 2 3 300 40 6 7 0\nintr 5\n"
TICK = os.sysconf("SC_CLK_TCK")


def test_idle_time_is_that_of_the_named_cpus_waiting_included() -> None:
    assert idle_s((0,), STAT) == 450 / TICK
    assert idle_s((0, 1), STAT) == 790 / TICK


def wait(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        time.sleep(0.01)


def test_a_clock_that_idles_as_long_as_we_wait_shows_no_foreign_load(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    load = ForeignLoad((0, 1), lambda: 0.0, stat)
    wait(0.05)
    stat.write_text(STAT.replace("400", str(400 + 100 * TICK)))
    assert load.share() == 0.0


def test_time_that_nobody_accounts_for_is_foreign(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    load = ForeignLoad((0, 1), lambda: 0.0, stat)
    wait(0.05)
    assert load.share() == pytest.approx(2.0, abs=0.9)


def test_what_the_timed_processes_used_is_not_foreign(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text(STAT)
    begin = time.perf_counter()
    load = ForeignLoad((0, 1), lambda: 2 * (time.perf_counter() - begin), stat)
    wait(0.05)
    assert load.share() == pytest.approx(0.0, abs=0.1)


def test_this_machines_counters_can_be_read() -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    load = ForeignLoad(cpus, lambda: 0.0)
    wait(0.05)
    assert 0.0 <= load.share() <= len(cpus) + 0.5
