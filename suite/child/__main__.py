"""Entry of the untrusted side: `python -I suite/child '{...}'`, started by the judge as zygote or for a compiler."""

from __future__ import annotations

import json
import os
import sys

CONFIG = json.loads(sys.argv[1]) if __name__ == "__main__" else {}

# The folder above is on the path for this one import only: beside `walls` it holds names that others may mean.
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import walls  # noqa: E402, F401

sys.path.pop()

if __name__ == "__main__":
    # Each of the two is imported alone: a compiler does not wait for what only a zygote needs.
    if "run" in CONFIG:
        import confine

        confine.run(CONFIG)
    else:
        # Before torch is imported: OpenMP reads the allowed CPUs when it is loaded.
        os.sched_setaffinity(0, CONFIG["cpus"])
        import zygote

        zygote.run(CONFIG)
