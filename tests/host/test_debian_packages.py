"""Each Debian package that a hint, a rule or a page tells people to install is one that Debian 12 has."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from axletree.check.diagnosis.bringers import BRINGERS
from axletree.host.shipped_data import read_shipped
from axletree.host.tools import PACKAGES

ROOT = Path(__file__).parents[2]
TEXTS = [
    *(path for kind in ("py", "toml") for path in (ROOT / "src").rglob(f"*.{kind}")),
    *(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "proof"),  # records of other systems
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile")),
]
COMMAND = re.compile(r"(?<![a-z-])apt(?:-get)? install((?: +[^\s`'\"&;|()\\,]+)+)")
ELSEWHERE = {
    **dict.fromkeys(
        ("amd-smi-lib", "hip-dev", "hipblas-dev", "hipcub-dev", "rocblas-dev", "rocprim-dev", "rocthrust-dev"), "AMD's"
    ),
    "nvidia-container-toolkit": "NVIDIA's",
    "g++-10": "Ubuntu 22.04",
}
"""Packages of others -> what the lines above them must say."""


@cache
def missing(names: tuple[str, ...]) -> frozenset[str]:
    """Those of some names that the package lists of this machine do not have; skips where there are no such lists."""
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    if shutil.which("apt-cache") is None or 'VERSION_ID="12"' not in release:
        pytest.skip("needs Debian 12's package lists")
    # Not "show": that takes a + for an expression.
    said = subprocess.run(
        ["apt-cache", "madison", "--", "base-files", *names], capture_output=True, text=True, check=False
    )
    there = {line.partition("|")[0].strip() for line in said.stdout.splitlines() if "Packages" in line}
    if "base-files" not in there:
        pytest.skip("needs Debian 12's package lists: apt-get update")
    return frozenset(names) - there


def named() -> dict[str, dict[str, str]]:
    """Package -> each place that says to install it -> the lines around that."""
    found: dict[str, dict[str, str]] = {}
    for path in TEXTS:
        lines = path.read_text(encoding="utf-8").replace("\\n", "  # ").splitlines()
        for number, line in enumerate(lines):
            around = "\n".join(lines[max(0, number - 2) : number + 1])
            for match in COMMAND.finditer(line):
                words = (word.rstrip(".:") for word in match[1].partition(" #")[0].split())
                for name in words:
                    if re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", name):
                        found.setdefault(name, {})[f"{path.relative_to(ROOT)}:{number + 1}"] = around
    return found


def test_hints_name_packages_that_exist() -> None:
    names = named()
    assert len(names) > 20
    wrong = missing(tuple(sorted(names)))
    assert {name: list(names[name]) for name in wrong - ELSEWHERE.keys()} == {}
    assert [place for name in wrong for place, text in names[name].items() if ELSEWHERE[name] not in text] == []
    assert wrong == ELSEWHERE.keys()


@pytest.mark.parametrize("table", ["tools", "headers", "libraries"])
def test_tables_name_packages_that_exist(table: str) -> None:
    bringers = read_shipped(BRINGERS)
    tables = {"tools": PACKAGES.values(), "headers": (pair[0] for pair in bringers.headers.values())}
    tables["libraries"] = (pair[0] for pair in bringers.libraries.values())
    assert missing(tuple(sorted({name for text in tables[table] for name in text.split()}))) == frozenset()
