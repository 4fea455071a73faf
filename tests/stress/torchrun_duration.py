"""
What recording adds to the time that torchrun takes, by alternated pairs.

    python tests/stress/torchrun_duration.py [--pairs N]

Prints the median of the differences. The exit status is 1 if it is more than
half a second.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


MOST_SECONDS = 0.5
TORCHRUN = Path(sys.executable).with_name("torchrun")


def seconds(folder: str, **environment: str) -> float:
    """
    Return how long a job of two workers takes that do nothing.
    """
    begin = time.monotonic()
    subprocess.run(
        [TORCHRUN, "--standalone", "--nproc-per-node=2", "job.py"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=300,
        check=True,
    )
    return time.monotonic() - begin


def main() -> int:
    """
    Measure the pairs, in turn.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=5)
    pairs = parser.parse_args().pairs
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "job.py").write_text("")
        for _ in range(pairs):
            without = seconds(folder)
            recorded = seconds(
                folder, ELASTIC_EVENTS_DESTINATION="file:log.jsonl"
            )
            differences.append(recorded - without)
            print(f"{without:.2f} s without, {recorded:.2f} s with")
    median = statistics.median(differences)
    print(f"median of the differences: {median:+.2f} s")
    return int(median > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
