"""``axletree diagnose`` on a log of 100 MB: CPU and peak memory, beside grep.

    python benchmarks/bench_diagnose.py [LOG ...] [--size MB]

Logs that are given are repeated up to the size; without any, one is made of compile commands such as ninja -v prints.
The failure stands in the middle. ``grep -E`` with all expressions alternated is run on the first 100 kB only: its
automaton grows with every line that it has not seen before.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

from measure import machine_line, measure

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.generic import GENERIC_KINDS
from axletree.host.shipped_data import read_shipped

FAILURE = b"FAILED: io.c.o\nsrc/io.c:3:10: fatal error: zstd.h: No such file or directory\ncompilation terminated.\n"
PART = 100_000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("logs", nargs="*", type=Path)
    arguments.add_argument("--size", type=int, default=100)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="axletree-bench-") as folder:
        log, part, patterns = (Path(folder) / name for name in ("log", "part", "patterns"))
        write_log(log, options.logs, options.size << 20)
        with log.open("rb") as stream:
            part.write_bytes(stream.read(PART))
        found = [extended(text) for kind in (*read_shipped(FAILURE_KINDS), *GENERIC_KINDS) for text in kind.patterns]
        patterns.write_text("\n".join(found) + "\n", encoding="utf-8")
        print(machine_line())
        print(f"{log.stat().st_size / 1e6:.0f} MB, {len(found)} expressions\n")
        print("| | CPU s | wall s | peak memory |\n| --- | ---: | ---: | ---: |")
        diagnose = [sys.executable, "-m", "axletree", "diagnose", "--json", str(log)]
        show("**`axletree diagnose`**", diagnose)
        show(f"`grep -cE`, all expressions, {PART // 1000} kB of it", ["grep", "-cE", "-f", str(patterns), str(part)])


def show(name: str, command: list[str]) -> None:
    # Through a pipe: a grep whose output is /dev/null stops at the first line that matches.
    used = measure(["sh", "-c", '"$@" | cat > /dev/null', "sh", *command])
    print(f"| {name} | {used.cpu:.1f} | {used.wall:.1f} | {used.memory} |", flush=True)


def write_log(path: Path, logs: list[Path], size: int) -> None:
    """Logs one after the other, again and again, with a failure in the middle."""
    pieces = [log.read_bytes() for log in logs] or [made()]
    with path.open("wb") as stream:
        failed = False
        while stream.tell() < size:
            for piece in pieces:
                if not failed and stream.tell() >= size // 2:
                    failed = bool(stream.write(FAILURE))
                stream.write(piece)


def made() -> bytes:
    """Compile commands, each of another file, with warnings between."""
    flags = " ".join(f"-I/src/third_party/library{number}/include -DUSE_FEATURE_{number}=1" for number in range(20))
    lines = []
    for number in range(4000):
        name = f"src/module{number % 97}/error_{number:x}.cpp"
        lines.append(f"[{number + 1}/4000] /usr/bin/c++ {flags} -Werror=return-type -O2 -o {name}.o -c {name}")
        if number % 7 == 0:
            lines.append(f"{name}:{number}:3: warning: unused variable 'failed_{number}' [-Wunused-variable]")
    return ("\n".join(lines) + "\n").encode()


def extended(pattern: str) -> str:
    """An expression as ``grep -E`` takes it: classes spelled out, looks around left out."""
    pattern = re.sub(r"\(\?(?:P<\w+>|[a-zA-Z-]*:)", "(", pattern)
    pattern = re.sub(r"\(\?[a-zA-Z]+\)", "", pattern)
    while (look := re.search(r"\(\?<?[=!]", pattern)) is not None:
        pattern = pattern[: look.start()] + pattern[closing(pattern, look.start()) + 1 :]
    text, at, inside = "", 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            text += escaped(pattern[at + 1], inside=inside)
            at += 2
            continue
        if char == "[" and not inside:
            inside = True
            text += "[^" if pattern[at + 1] == "^" else "["
            at += len("[^") if pattern[at + 1] == "^" else 1
            continue
        inside = inside and char != "]"
        text += char
        at += 1
    return re.sub(r"([*+?}])\?", r"\1", text).replace("[^]", ".")


def escaped(char: str, *, inside: bool) -> str:
    """What follows a backslash, outside or inside of a bracket expression."""
    classes = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}
    others = {"S": "[^[:space:]]", "W": "[^[:alnum:]_]", "D": "[^0-9]", "n": ".", "t": "\t"}
    if inside:
        return classes.get(char, "" if char in "]^-nt" else char)
    return f"[{classes[char]}]" if char in classes else others.get(char, "\\" + char)


def closing(pattern: str, at: int) -> int:
    """Where the group that begins at a place ends."""
    depth = 0
    while True:
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = pattern.index("]", at + 2 + (pattern[at + 1] == "^"))
        else:
            depth += {"(": 1, ")": -1}.get(pattern[at], 0)
            if depth == 0:
                return at
        at += 1


if __name__ == "__main__":
    main()
