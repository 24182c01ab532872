"""The triton that a PyTorch tree is made for: what ``make triton`` installs, read from the tree's own pins.

``scripts/install_triton_wheel.sh`` of the tree says what PyTorch's own builds of it are called (``pytorch-triton`` in
older trees); ``.ci/docker/triton_version.txt`` has the version, ``.ci/docker/ci_commit_pins/triton.txt`` the commit
that a nightly's local version names by its first eight digits. A release for CUDA requires ``triton`` from anywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.version import InvalidVersion, Version

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

World = Literal["cuda", "rocm", "xpu"]

SCRIPT = "scripts/install_triton_wheel.sh"
_PINS = ".ci/docker/ci_commit_pins"
_VERSIONS: dict[World, tuple[str, ...]] = {
    "cuda": (".ci/docker/triton_version.txt",),
    "rocm": (".ci/docker/triton_version.txt",),
    "xpu": (".ci/docker/triton_xpu_version.txt", ".ci/docker/triton_version.txt"),
}
"""Files that may have the version, the first that is there counts."""
_COMMITS: dict[World, tuple[str, ...]] = {
    "cuda": (f"{_PINS}/triton.txt",),
    "rocm": (f"{_PINS}/triton-rocm.txt", f"{_PINS}/triton.txt"),  # one of its own up to 2.4
    "xpu": (f"{_PINS}/triton-xpu.txt",),
}
FILES: tuple[str, ...] = tuple(
    dict.fromkeys([SCRIPT, *(path for table in (_VERSIONS, _COMMITS) for paths in table.values() for path in paths)])
)
"""What there is to read of a tree."""
_SUFFIXES: dict[World, str] = {"cuda": "", "rocm": "-rocm", "xpu": "-xpu"}
_NAME = re.compile(r'TRITON_VERSION="((?:pytorch-)?triton)==')
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGITS = 8


class TritonPin(msgspec.Struct, frozen=True, kw_only=True):
    """A pinned triton."""

    requirement: str
    """As a wheel's metadata has it: ``triton==3.4.0``, ``triton==3.4.0+git5f40dc89``."""
    name: str
    version: str
    commit: str | None
    """Of a nightly."""
    channel: Literal["test", "nightly"]
    """The part of PyTorch's wheel index that has it: ``whl/test``, ``whl/nightly``."""


def pinned_triton(files: Mapping[str, str], *, world: World, release: bool) -> TritonPin | None:
    """The triton of a tree.

    Args:
        files: content of those of :data:`FILES` that the tree has.
        world: the GPU world that PyTorch is built for.
        release: whether this is a release, not a nightly.

    Returns:
        ``None`` where the tree does not say, as in source packages of distributions.

    Raises:
        IntegrityError: a file is not what its name says, or a nightly's commit is missing.
    """
    version_file = next((path for path in _VERSIONS[world] if path in files), None)
    if version_file is None:
        return None
    problems: list[Problem] = []
    version = files[version_file].strip()
    try:
        Version(version)
    except InvalidVersion:
        problems.append(Problem(file=version_file, message=f"{version[:60]!r} is not a version"))
    commit = None if release else next((files[path].strip() for path in _COMMITS[world] if path in files), "")
    if commit is not None and _COMMIT.fullmatch(commit) is None:
        message = f"{commit[:60]!r} is not a commit" if commit else "the file is missing, but nightlies need its commit"
        problems.append(Problem(file=_COMMITS[world][-1], message=message))
    if problems:
        raise IntegrityError(*problems)
    name = "triton" if release and world == "cuda" else _name(files.get(SCRIPT, "")) + _SUFFIXES[world]
    local = f"+git{commit[:_DIGITS]}" if commit is not None else ""
    return TritonPin(
        requirement=f"{name}=={version}{local}",
        name=name,
        version=version,
        commit=commit,
        channel="test" if release else "nightly",
    )


def _name(script: str) -> str:
    found = _NAME.search(script)
    return found[1] if found is not None else "triton"


def other_pins(requires: Mapping[str, tuple[str, ...]], pin: TritonPin) -> Iterator[tuple[str, str]]:
    """Packages that require another triton than the tree was made for: package, its requirement.

    ``==`` and ``~=`` of the same version are the same pin: releases have had either.
    """
    names = {pin.name, pin.name.removeprefix("pytorch-")}
    for package, texts in requires.items():
        for text in texts:
            match = re.match(r"([A-Za-z0-9._-]+)\s*(?:[=~]=)?\s*([^;\s]*)", text)
            if match is not None and match[1].lower() in names and match[2].partition("+")[0] != pin.version:
                yield package, text
