"""A program for agents of benchmarks: it says when it was started, then speaks at a steady pace."""

from __future__ import annotations

import sys
import time


def main() -> None:
    """PACE lines a second for SECONDS, each numbered; then it ends."""
    file, pace, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    with open(file, "a", encoding="utf-8") as out:  # noqa: PTH123  # pathlib costs a start-up
        out.write(f"{time.time_ns() // 1000}\n")
    begun, count = time.monotonic(), 0
    while (now := time.monotonic() - begun) < seconds:
        due = int(now * pace)
        if due > count:
            sys.stdout.write(
                "".join(f"line {n} of what it has to say\n" for n in range(count, due))
            )
            sys.stdout.flush()
            count = due
        time.sleep(0.1)
    sys.stdout.write(f"said {count}\n")


if __name__ == "__main__":
    main()
