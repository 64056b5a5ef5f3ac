"""The Triton starter without a GPU: right in Triton's interpreter (in fp16), and it builds for sm_90."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
STARTER = HERE.parents[1] / "tasks" / "gqa_paged_decode_h32_kv4_d128_ps1" / "starter_triton.py"
pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("triton") is None, reason="triton is not installed: pip install triton"
    ),
    pytest.mark.slow,
]


def probe(mode: str, scratch: Path, *overrides: str) -> dict[str, Any]:
    """What the probe prints, run in a process and with a compile cache of its own."""
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(scratch),
        "TRITON_INTERPRET": "1" if mode == "interpret" else "0",
    }
    command = [sys.executable, str(HERE / "triton_starter_probe.py"), mode, str(STARTER), *overrides]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("overrides", [("SPLITS=1",), ("SPLITS=4", "BLOCK_KV=16")])
def test_ragged_requests_are_right_at_several_tunings(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    errors = probe("interpret", tmp_path, *overrides)
    assert errors["empty_ok"], "a request of length 0 must give output 0 and lse -inf"
    assert errors["output"] < 2e-3
    assert errors["lse"] < 1e-4


@pytest.mark.parametrize("overrides", [(), ("BLOCK_KV=128", "STAGES=4", "WARPS=2", "SPLITS=64")])
def test_builds_for_sm_90_within_its_shared_memory(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    for sizes in probe("compile", tmp_path, *overrides).values():
        assert sizes["cubin"] > 0
        assert sizes["shared"] <= 227 * 1024
