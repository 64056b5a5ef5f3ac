"""Checkpoints of OpenEvolve: what is torn is passed over, and what is copied is whole and nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from methods.openevolve import checkpoints
from methods.openevolve.settings import WITHOUT_END

IDS = ("a", "b", "c")


def write(folder: Path, attempt: int, number: int, ids: tuple[str, ...] = IDS) -> Path:
    """A checkpoint with its programs on two islands."""
    checkpoint = folder / f"attempt_{attempt}" / "checkpoints" / f"checkpoint_{number}"
    (checkpoint / "programs").mkdir(parents=True)
    for name in ids:
        (checkpoint / "programs" / f"{name}.json").write_text(json.dumps({"id": name, "code": f"// {name}"}))
    metadata = {"islands": [list(ids[:1]), list(ids[1:])], "last_iteration": number}
    (checkpoint / "metadata.json").write_text(json.dumps(metadata))
    return checkpoint


def test_the_newest_of_all_attempts_is_taken(tmp_path: Path) -> None:
    assert checkpoints.newest(tmp_path) is None
    write(tmp_path, 0, 9)
    last = write(tmp_path, 1, 10)
    write(tmp_path, 2, 2)
    write(tmp_path, 2, WITHOUT_END + 2)  # of a run whose workers are dead
    assert checkpoints.newest(tmp_path) == last


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("metadata.json", None),
        ("metadata.json", ""),
        ("metadata.json", '{"islands": [["a"'),
        ("metadata.json", "[]"),
        ("metadata.json", '{"islands": 3}'),
        ("metadata.json", '{"islands": [3]}'),
        ("metadata.json", '{"islands": [[], []]}'),
        ("programs/b.json", None),
        ("programs/b.json", '{"id": "b", "code": "// '),
        ("programs/b.json", '{"id": "a", "code": "// a"}'),
        ("programs/b.json", '{"id": "b"}'),
        ("programs/b.json", b"\xff"),
    ],
)
def test_a_torn_one_is_passed_over(tmp_path: Path, file: str, content: str | bytes | None) -> None:
    sound, torn = write(tmp_path, 0, 1), write(tmp_path, 0, 2)
    assert checkpoints.newest(tmp_path) == torn
    if content is None:
        (torn / file).unlink()
    else:
        (torn / file).write_bytes(content.encode() if isinstance(content, str) else content)
    assert not checkpoints.is_sound(torn)
    assert checkpoints.newest(tmp_path) == sound


def test_the_copy_has_the_programs_of_the_islands_and_no_other(tmp_path: Path) -> None:
    checkpoint = write(tmp_path, 0, 4)
    (checkpoint / "programs" / "ghost.json").write_text('{"id": "ghost", "code": ""}')
    (checkpoint / "programs" / "torn.json").write_text('{"id": ')
    assert checkpoints.is_sound(checkpoint)
    copy = checkpoints.repaired(checkpoint, tmp_path / "resumed")
    assert {path.stem for path in (copy / "programs").iterdir()} == set(IDS)
    assert (copy / "metadata.json").read_bytes() == (checkpoint / "metadata.json").read_bytes()
    assert checkpoints.is_sound(copy)


def test_old_ones_are_removed_in_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (1, 2, 9, 10, 11):
        write(tmp_path, 0, number)
    checkpoints.prune(tmp_path / "attempt_0")
    assert [checkpoints.iteration(path) for path in checkpoints.of(tmp_path / "attempt_0")] == [11, 10, 9]
    checkpoints.prune(tmp_path / "attempt_7")
