"""Versions that CI scripts install, and the small files of pins beside them. Nothing is run.

A script may install different versions for different builds. What stands in a function or a ``case`` that names a CUDA
version is about that CUDA.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.drift import ranges
from axletree.package.drift.evidence import Evidence, cuda_label
from axletree.package.drift.names import look_up, own_version
from axletree.package.drift.requirements import RequirementOrigin, of_cuda, of_requirement
from axletree.recipe.addresses import COMMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.drift.names import DependencyTable, Kind

_ASSIGNED = re.compile(
    r"""^\s*(?:export\s+|local\s+|readonly\s+|declare\s+)*_?([A-Za-z][A-Za-z0-9_]*?)_(?:VERSION|version|TAG)=["']?v?(\d[\w.+-]*)["']?\s*(?:[;#].*)?$"""
)
_PIP = re.compile(r"(?<![\w.=-])([A-Za-z][A-Za-z0-9._-]*)==(\d[\w.!+]*(?:\.\*)?)")
_CONDA = re.compile(r"(?<![\w.=-])([a-z][a-z0-9._-]*)=(\d[\w.]*)(?:=[^\s\"']*)?(?![\w=])")
_ARCHIVE = re.compile(r"(?<![\w-])([A-Za-z][A-Za-z_]*)-linux-[^\s\"']{0,200}?-(\d+(?:\.\d+){2,})(?=[-_.])")
_CLONE = re.compile(r"git\s+clone\b(?P<rest>.*)")
_BRANCH = re.compile(r"(?:-b|--branch)[ =]+[\"']?([^\s\"'$]+)[\"']?")
_ADDRESS = re.compile(r"https?://\S+?/([A-Za-z0-9._-]+?)(?:\.git)?[\"']?(?:\s|$)")
_FUNCTION = re.compile(r"^(?:function\s+)?([A-Za-z_]\w*)\s*+(?:\(\)\s*+)?\{")
_LABEL = re.compile(r"^\s*\(?[\"']?([\w.*|?\[\]${}-]+)[\"']?\)\s*$")
_CUDA_IN_NAME = re.compile(r"cuda-?(\d{2})\.?(\d{1,2})|^install_(\d{2})(\d)$")
_LONGEST = 1000
_GPU_END = re.compile(r"-(cu\d{2,3})$")
_FILE_END = re.compile(r"(?:[-_](?:version|pin|release|tag))+$")


def of_script(text: str, *, file: str, table: DependencyTable) -> tuple[Evidence, ...]:
    """What a shell script pins: variables called ``..._VERSION``, packages for pip and conda, archives, cloned tags."""
    found: list[Evidence] = []
    scope = ""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line[:_LONGEST].split(" #")[0] if not line.lstrip().startswith("#") else ""
        if (opened := _FUNCTION.match(plain)) is not None:
            scope = opened[1]
        elif (label := _LABEL.match(plain)) is not None:
            scope = label[1]
        elif plain.strip() == ";;" or plain == "}":
            scope = ""
        for each in _of_line(plain, file, number, table):
            gpus = each.gpus or _gpus_of(scope)
            found.append(msgspec.structs.replace(each, when=scope, gpus=gpus))
    return tuple(dict.fromkeys(found))


def _gpus_of(scope: str) -> tuple[str, ...]:
    found = _CUDA_IN_NAME.search(scope)
    return () if found is None else ("cu" + "".join(part for part in found.groups() if part),)


def _of_line(line: str, file: str, number: int, table: DependencyTable) -> Iterator[Evidence]:
    assigned = _ASSIGNED.match(line)
    if assigned is not None:
        name = look_up(table, "variable", assigned[1])
        if name == "cuda":
            yield from _of_cuda_variable(assigned[2], file, number, table)
        else:
            yield from _pin(table, name, "variable", assigned[2], line, file, number)
    for name, version in _PIP.findall(line):
        origin = RequirementOrigin(column="ci", role="pin", file=file, phase="build")
        for each in of_requirement(f"{name}=={version}", origin, table=table, line=number):
            yield msgspec.structs.replace(each, text=line.strip()[:200])
    if "conda" in line.lower():
        for name, version in _CONDA.findall(line):
            yield from _pin(table, look_up(table, "conda", name), "conda", version, line, file, number)
    for name, version in _ARCHIVE.findall(line):
        yield from _pin(table, look_up(table, "variable", name), "variable", version, line, file, number)
    clone = _CLONE.search(line)
    if clone is not None:
        branch, address = _BRANCH.search(clone["rest"]), _ADDRESS.search(clone["rest"] + " ")
        if branch is not None and address is not None:
            yield from _pin(table, look_up(table, "submodule", address[1]), "tag", branch[1], line, file, number)


def _of_cuda_variable(version: str, file: str, number: int, table: DependencyTable) -> tuple[Evidence, ...]:
    gpus = (cuda_label(version),) if re.fullmatch(r"\d+\.\d+(?:\.\d+)*", version) else ()
    return of_cuda(version, file=file, line=number, gpus=gpus, table=table)


def _pin(
    table: DependencyTable, name: str, kind: Kind, version: str, line: str, file: str, number: int
) -> Iterator[Evidence]:
    own = own_version(table, name, kind, version)
    if own is not None:
        yield Evidence(
            dependency=name,
            column="ci",
            role="pin",
            file=file,
            line=number,
            text=line.strip()[:200],
            spec=own,
            range=ranges.of_own(own),
            confidence="likely",
        )


def of_pin_file(text: str, *, file: str, table: DependencyTable) -> tuple[Evidence, ...]:
    """A file that holds nothing but a commit, a tag or a version, and is called after what it pins.

    ``ci_commit_pins/nccl-cu12.txt``, ``triton_version.txt``, ``third_party/eigen_pin.txt``.
    """
    lines = [
        (n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip() and line.strip()[0] != "#"
    ]
    if len(lines) != 1 or " " in lines[0][1]:
        return ()
    number, pinned = lines[0]
    stem = file.rpartition("/")[2].removesuffix(".txt")
    gpu = _GPU_END.search(stem)
    name = look_up(table, "pin", _FILE_END.sub("", _GPU_END.sub("", stem)))
    own = None if COMMIT.fullmatch(pinned) else own_version(table, name, "pin", pinned)
    if own is None and not COMMIT.fullmatch(pinned):
        return ()
    return (
        Evidence(
            dependency=name,
            column="ci",
            role="pin",
            file=file,
            line=number,
            text=pinned,
            spec=own or pinned,
            range=None if own is None else ranges.of_own(own),
            gpus=() if gpu is None else (gpu[1],),
            note="" if own is not None else "a commit, which has no version",
        ),
    )
