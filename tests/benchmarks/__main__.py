"""`make bench`: every figure of the README, one benchmark after the other; raw output under results/.

About twenty-five minutes on two idle cores, most of it A/A; `--quick` takes a few of everything, to see that it works.
"""

from __future__ import annotations

import subprocess
import sys

FULL = {
    "throughput": ["--count", "12"],
    "aa": ["--champion", "40", "--search", "40"],
    "champions": [],
    "contenders": [],
    "door": [],
    "survival": [],
}
QUICK = {"throughput": ["--count", "2"], "aa": ["--champion", "2", "--search", "2"], "champions": [], "contenders": []}


def main() -> None:
    """Run each in a process of its own, so that none inherits another's memory, threads or cluster."""
    plan = QUICK if "--quick" in sys.argv[1:] else FULL
    failed = [
        name
        for name, options in plan.items()
        if subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}", *options], check=False).returncode
    ]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
