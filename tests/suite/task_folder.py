"""A small task folder for tests of whatever reads one; its kernels are never run."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "task.toml": """\
title = "Scaled addition"
origin = "Ours"
licence = "Apache-2.0"

[definition]
name = "addition"
op_type = "elementwise"
description = "out = alpha * x + y"

[definition.axes]
rows = { type = "var" }
width = { type = "const", value = 256 }

[definition.inputs]
x = { shape = ["rows", "width"], dtype = "float32" }
y = { shape = ["rows", "width"], dtype = "float32" }
alpha = { dtype = "float32" }

[definition.outputs]
out = { shape = ["rows", "width"], dtype = "float32" }
total = { shape = ["rows"], dtype = "float32" }

[tolerance]
out = { rtol = 1e-4, atol = 1e-4 }
total = { rtol = 0.0, atol = 1e-2, scaled = false }

[[check]]
params = { rows = 1 }
[[check]]
params = { rows = 7 }

[lane.cpu]
languages = ["cpp", "python"]
timeout_s = 2.0

[[lane.cpu.search]]
params = { rows = 2048 }
[[lane.cpu.search]]
params = { rows = 3001 }

[lane.cpu.heldout]
count = 1
[lane.cpu.heldout.draws]
rows = { uniform_int = [2500, 2600] }

[lane.cpu.starters.cpp]
plain = ["kernel.cpp"]

[lane.cpu.baseline]
name = "loop"
version = 1
language = "cpp"
files = ["kernel.cpp"]
entry_point = "kernel.cpp::run"
""",
    "shapes.py": """\
def axes(params):
    return {"rows": params["rows"]}


def heldout_params(draw, rng):
    return {"rows": draw["rows"]}
""",
    "inputs.py": "FAMILIES = ('normal',)\n",
    "reference.py": "def run(x, y, alpha): ...\n",
    "kernel.cpp": 'extern "C" int run() { return 0; }\n',
}


def write(parent: Path) -> Path:
    """The folder, below `parent`."""
    folder = parent / "addition"
    folder.mkdir(parents=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace the first `old`, which must be there."""
    text = path.read_text()
    assert old in text, f"{old!r} is in {path.name}"
    path.write_text(text.replace(old, new, 1))
