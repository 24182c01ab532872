"""Addresses of conda packages, and the lists of them that ``conda list --explicit`` prints."""

from __future__ import annotations

import re

import msgspec

from axletree.core.errors import Problem, RecipeError
from axletree.environment.imported import Entry, Imported, Note, secret_in, without_secrets
from axletree.environment.python_pin import python_pin
from axletree.recipe.match_spec import MatchSpec

MARK = "@EXPLICIT"
_ADDRESS = re.compile(
    r"(?P<channel>(?:https?|file)://\S+)/(?P<subdir>[a-z0-9_]+-[a-z0-9_]+|noarch)/"
    r"(?P<name>[a-z0-9_][a-z0-9_.-]*)-(?P<version>[A-Za-z0-9_.!+]+)-(?P<build>[A-Za-z0-9_.+]+?)"
    r"(?:\.conda|\.tar\.bz2)(?:#(?P<digest>[0-9a-f]{32}|(?:sha256:)?[0-9a-f]{64}))?"
)
_CONDA_ORG = re.compile(r"https://conda\.anaconda\.org/(?P<name>\S+)")
_HERE = ("noarch", "linux-64", "linux-aarch64")


class CondaAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a package, taken apart."""

    channel: str
    """By its name, if rattler would find it by that."""
    subdir: str
    spec: str
    """Match spec of this one file."""
    name: str
    version: str
    build: str


def spec_of_address(text: str) -> CondaAddress | None:
    """What the address of a ``.conda`` or ``.tar.bz2`` file, with or without a digest, says; ``None`` if it is none."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None:
        return None
    named = _CONDA_ORG.fullmatch(found["channel"])
    digest = (found["digest"] or "").removeprefix("sha256:")
    bracket = f"[{'md5' if len(digest) == 32 else 'sha256'}={digest}]" if digest else ""
    return CondaAddress(
        channel=named["name"] if named else found["channel"],
        subdir=found["subdir"],
        spec=f"{found['name']} =={found['version']} {found['build']}{bracket}",
        name=found["name"],
        version=found["version"],
        build=found["build"],
    )


def read_explicit(text: str, *, file: str, name: str | None, own: str) -> Imported:
    """Read a list of packages that ``conda list --explicit`` printed.

    Args:
        text: its content.
        file: how messages name it.
        name: of the environment.
        own: the Python of Axletree, for files that name none.

    Raises:
        RecipeError: with every problem of the file.
    """
    problems: list[Problem] = []
    found: dict[int, CondaAddress] = {}
    notes: list[Note] = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#") or entry == MARK:
            continue
        address = spec_of_address(entry)
        if secret_in(entry):
            why = "left out, because it contains a login"
            notes.append(Note(line=number, text=without_secrets(entry), why=why))
        elif address is None:
            message = f"{without_secrets(entry)!r} is not the URL of a conda package"
            problems.append(Problem(file=file, line=number, message=message))
        elif address.subdir not in _HERE:
            message = f"the package is for {address.subdir}, but environments are for Linux"
            problems.append(Problem(file=file, line=number, message=message))
        else:
            found[number] = address
    if not found and not problems:
        problems.append(Problem(file=file, message="the file lists no packages"))
    if problems:
        raise RecipeError(*problems)
    pythons = [
        MatchSpec(name=each.name, version=f"=={each.version}", build=each.build)
        for each in found.values()
        if each.name == "python"
    ]
    pin = python_pin(pythons, (), own=own)
    if pin.why:
        notes.append(Note(line=None, text=f"python = {pin.python}", why=pin.why))
    return Imported(
        name=name or "imported",
        python=pin.python,
        channels=tuple(Entry(text=each) for each in dict.fromkeys(address.channel for address in found.values())),
        requires=tuple(Entry(text=each.spec) for each in found.values()),
        notes=tuple(notes),
    )
