"""What ``axletree --help`` and ``axletree --version`` cost: CPU time of the process, beside Python and click alone.

Target: under 100 ms of CPU time, with bytecode compiled (as ``make`` installs it).
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

RUNS = 31
HELLO = "import click; click.command()(lambda: None).main(['--help'], prog_name='hello')"
AXLETREE = str(Path(sys.executable).with_name("axletree"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "click hello --help": [sys.executable, "-c", HELLO],
    "axletree --version": [AXLETREE, "--version"],
    "axletree --help": [AXLETREE, "--help"],
}


def cpu_ms(command: list[str]) -> float:
    """User and system time of one run, in milliseconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Print the table. Runs are interleaved, so that a busy moment hits all commands alike."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for command in COMMANDS.values():
        cpu_ms(command)  # warm: bytecode and page cache
    for _ in range(RUNS):
        for name, command in COMMANDS.items():
            times[name].append(cpu_ms(command))
    print("| command | CPU, median ms | least ms |")
    print("| --- | ---: | ---: |")
    for name, values in times.items():
        print(f"| `{name}` | {statistics.median(values):.0f} | {min(values):.0f} |")


if __name__ == "__main__":
    main()
