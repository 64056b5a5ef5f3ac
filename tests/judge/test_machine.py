"""Facts of the machine are read as the kernel prints them."""

from __future__ import annotations

from pathlib import Path

from suite.judge.machine import UNKNOWN_CACHE, cache_bytes, cpu_model


def cache(folder: Path, level: str, kind: str, size: str, shared: str) -> None:
    folder.mkdir(parents=True)
    for name, text in (("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)):
        (folder / name).write_text(text + "\n")


def test_a_shared_cache_counts_once_and_instruction_caches_never(tmp_path: Path) -> None:
    for cpu in ("0", "1"):
        cache(tmp_path / f"cpu{cpu}" / "cache" / "index0", "1", "Data", "32K", cpu)
        cache(tmp_path / f"cpu{cpu}" / "cache" / "index1", "1", "Instruction", "64K", cpu)
        cache(tmp_path / f"cpu{cpu}" / "cache" / "index3", "3", "Unified", "8M", "0-1")
    assert cache_bytes((0, 1), tmp_path) == (8 << 20) + 2 * (32 << 10)
    assert cache_bytes((0,), tmp_path) == (8 << 20) + (32 << 10)


def test_a_silent_kernel_means_a_generous_guess(tmp_path: Path) -> None:
    assert cache_bytes((0,), tmp_path) == UNKNOWN_CACHE


def test_the_processors_name_is_the_first_one_listed(tmp_path: Path) -> None:
    listing = tmp_path / "cpuinfo"
    listing.write_text("processor\t: 0\nmodel name\t: Example 9000 \n\nprocessor\t: 1\nmodel name\t: Other\n")
    assert cpu_model(listing) == "Example 9000"
    listing.write_text("processor\t: 0\n")
    assert cpu_model(listing) == "unknown cpu"


def test_this_machine_answers() -> None:
    assert cpu_model()
    assert cache_bytes((0,)) > 0
