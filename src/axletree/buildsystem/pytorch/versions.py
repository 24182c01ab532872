"""How PyTorch names its releases: nightly, candidate, post and local versions, and what ``DESIRED_CUDA`` says.

``version.txt`` of the source holds the next release, ``2.14.0a0``. What is built from it is called by what it is for
(``tools/generate_torch_version.py``, ``.circleci/scripts/binary_populate_env.sh``):

==========================  ============================
nightly of 22 August 2026   ``2.14.0.dev20260822``
release, and its candidates  ``2.14.0`` (tags ``v2.14.0`` and ``v2.14.0-rc3``)
second build of a release   ``2.14.0.post2``
a developer's own           ``2.14.0a0+git1a2b3c4``
==========================  ============================

The local label (``+cu130``, ``+rocm7.1``, ``+cpu``, ``+xpu``) comes last. A wheel may lack it in its metadata, as those
on the default index do, and have it in ``torch.version``: versions are therefore compared without.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal

import msgspec
from packaging.version import InvalidVersion, Version

World = Literal["cpu", "cuda", "rocm", "xpu"]

_TAG = re.compile(r"v(?P<release>\d+\.\d+\.\d+)(?:-rc\d+)?", re.ASCII)
_SHA = re.compile(r"[0-9a-f]{7,40}")
_DATE = re.compile(r"[0-9]{8}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_SHORT = 7
"""Digits of a commit that a version keeps."""
_FORMS = (
    (re.compile(r"cpu(?:-(?P<machine>aarch64|s390x))?"), "cpu"),
    (re.compile(r"cu(?P<major>\d\d)(?P<minor>\d)", re.ASCII), "cuda"),
    (re.compile(r"(?P<major>\d+)\.(?P<minor>\d+)(?:-(?P<machine>aarch64))?", re.ASCII), "cuda"),
    (re.compile(r"rocm(?P<version>\d+(?:\.\d+)+)", re.ASCII), "rocm"),
    (re.compile(r"xpu"), "xpu"),
)
KINDS = ("nightly", "rc", "post", "git", "tag")
"""What can be said of a build, see :func:`version_for`."""


class DesiredCuda(msgspec.Struct, frozen=True, kw_only=True):
    """What a build is for, as upstream's ``DESIRED_CUDA`` and its matrix say it."""

    world: World
    version: str = ""
    """Release of CUDA or ROCm: ``13.0``, ``6.2.4``."""
    machine: str = ""
    """``aarch64`` or ``s390x`` where the text says so."""

    @property
    def label(self) -> str:
        """Local version label, and value of axis ``gpu``: ``cu130``, ``rocm7.1``, ``cpu``, ``xpu``."""
        if self.world == "cuda":
            return f"cu{self.version.replace('.', '')}"
        return f"rocm{self.version}" if self.world == "rocm" else self.world


def parse_desired_cuda(text: str) -> DesiredCuda:
    """Read ``cpu``, ``cu126``, ``12.6``, ``12.6-aarch64``, ``rocm6.3``, ``xpu`` or ``cpu-aarch64``.

    Raises:
        ValueError: it is none of them.
    """
    for form, world in _FORMS:
        match = form.fullmatch(text)
        if match is not None:
            found = match.groupdict()
            version = found.get("version") or ".".join(filter(None, (found.get("major"), found.get("minor"))))
            return msgspec.convert(
                {"world": world, "version": version, "machine": found.get("machine") or ""}, DesiredCuda
            )
    raise ValueError(f"{text!r} is not a valid DESIRED_CUDA (such as cpu, cu126, 12.6, 12.6-aarch64, rocm6.3 or xpu)")


def version_for(base: str, text: str) -> str:
    """The version of a build.

    Args:
        base: what ``version.txt`` or a recipe says: ``2.14.0a0``, ``2.14.0``.
        text: ``nightly=20260822``, ``rc=3``, ``post=2`` (the build number), ``git=1a2b3c4``, ``tag=v2.14.0-rc3``; or a
            version itself, as upstream's ``OVERRIDE_PACKAGE_VERSION``.

    Raises:
        ValueError: ``text`` is nothing of this; with what it should be.
    """
    kind, equals, value = text.partition("=")
    if not equals:
        return _checked(text)
    if kind in {"rc", "post"}:
        if not _NUMBER.fullmatch(value):
            raise ValueError(f"{value!r} is not a number (expected, for example, {kind}=2)")
        return candidate(base, int(value)) if kind == "rc" else rebuilt(base, int(value))
    if kind == "tag":
        return of_tag(value)
    if kind in {"nightly", "git"}:
        return nightly(base, value) if kind == "nightly" else from_commit(base, value)
    known = ", ".join(f"{each}=" for each in KINDS)
    raise ValueError(f"unknown kind of release {kind!r} (expected {known} or a version)")


def release_of(base: str) -> str:
    """The release that a version leads to: ``2.14.0`` of ``2.14.0a0`` and of ``2.14.0.dev20260822+cpu``."""
    return Version(base).base_version


def nightly(base: str, date: str) -> str:
    """Version of a nightly build, by its date (UTC): ``2.14.0.dev20260822``.

    Raises:
        ValueError: there is no such day.
    """
    try:
        dt.date.fromisoformat(date if _DATE.fullmatch(date) else "")
    except ValueError:
        raise ValueError(f"{date!r} is not a date (expected eight digits, such as nightly=20260822)") from None
    return f"{release_of(base)}.dev{date}"


def candidate(base: str, number: int) -> str:
    """Version of a release candidate, as conda-forge has it: ``2.14.0rc3``. Upstream's own wheels say ``2.14.0``."""
    return f"{release_of(base)}rc{number}"


def rebuilt(base: str, number: int) -> str:
    """Version of a further build of a release: ``2.14.0.post2`` for number 2, and nothing added up to 1."""
    return f"{release_of(base)}.post{number}" if number > 1 else release_of(base)


def from_commit(base: str, sha: str) -> str:
    """Version of a developer's build: ``2.14.0a0+git1a2b3c4``; what stands before ``+`` is as it was.

    Raises:
        ValueError: it is no commit.
    """
    if not _SHA.fullmatch(sha):
        raise ValueError(f"{sha!r} is not a commit (expected {_SHORT} to 40 hexadecimal digits, such as git=1a2b3c4)")
    return f"{Version(base).public}+git{sha[:_SHORT]}"


def of_tag(tag: str) -> str:
    """Version of what is built from a tag: ``2.14.0`` of ``v2.14.0``, and of each candidate ``v2.14.0-rc3``.

    Raises:
        ValueError: it is no tag of a release.
    """
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(f"{tag!r} is not a release tag (such as v2.14.0 or v2.14.0-rc3)")
    return match["release"]


def _checked(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion:
        known = ", ".join(f"{each}=" for each in KINDS)
        raise ValueError(f"{text!r} is neither a version (PEP 440) nor one of {known}") from None
