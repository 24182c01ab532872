"""The tags of a wheel (PEP 425, PEP 600) from what is in it: who must load it, and how old a system may be."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
from packaging.tags import compatible_tags, cpython_tags, parse_tag

from axletree.core.errors import IntegrityError, Problem
from axletree.package.libraries.policy import lowest_policy, symbol_needs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.policy import Policy

_VERSIONED = re.compile(r"\.cpython-(\d)(\d+)([a-z]*)(-[A-Za-z0-9_-]+)?\.so$")
_PYTHON = re.compile(r"(\d)\.(\d+)(t?)")


class Tags(msgspec.Struct, frozen=True, kw_only=True):
    """The three tags of a wheel; python and abi may be sets (``py2.py3``)."""

    python: str
    abi: str
    platform: str

    @property
    def each(self) -> tuple[str, ...]:
        """Every single tag, as WHEEL lists them."""
        return tuple(sorted(str(tag) for tag in parse_tag(f"{self.python}-{self.abi}-{self.platform}")))

    @property
    def pure(self) -> bool:
        """Whether it fits any platform."""
        return self.platform == "any"


def compute_tags(
    elfs: Mapping[str, ElfFacts],
    policies: Sequence[Policy],
    *,
    original: Iterable[str] = (),
    python: str | None = None,
) -> Tags:
    """The tags of a wheel that holds these ELF files.

    Args:
        elfs: path in the wheel -> facts.
        policies: manylinux policies.
        original: tags of the WHEEL file that the content came with. Their python and abi tags are kept: only the build
            backend knows whether the Python files beside the libraries fit other versions.
        python: version that the content was built for (``3.11``, ``3.13t``), for content without original tags.

    Raises:
        IntegrityError: files for several architectures or Pythons, or files that need CPython while neither their
            names nor ``python`` tell which.
    """
    platform = platform_tag(elfs, policies)
    kept = sorted({tuple(tag.split("-")[:2]) for tag in original})
    if kept:
        pythons, abis = dict.fromkeys(tag[0] for tag in kept), dict.fromkeys(tag[1] for tag in kept)
        return Tags(python=".".join(pythons), abi=".".join(abis), platform=platform)
    interpreter, abi = _python_tags(elfs, python)
    return Tags(python=interpreter, abi=abi, platform=platform)


def takes(python: str, tags: Iterable[str]) -> bool:
    """Whether CPython ``python`` (``3.11``, ``3.13t``) takes a wheel with one of these tags, platforms aside.

    Raises:
        ValueError: ``python`` is no version of CPython.
    """
    found = _PYTHON.fullmatch(python)
    if found is None:
        raise ValueError(f"{python!r} is not a CPython version")
    version = (int(found[1]), int(found[2]))
    interpreter = f"cp{found[1]}{found[2]}"
    taken = {
        (tag.interpreter, tag.abi)
        for tag in (
            *cpython_tags(version, [interpreter + found[3]], ["any"]),
            *compatible_tags(version, interpreter, ["any"]),
        )
    }
    return any((tag.interpreter, tag.abi) in taken for text in tags for tag in parse_tag(text))


def platform_tag(elfs: Mapping[str, ElfFacts], policies: Sequence[Policy]) -> str:
    """``any`` without ELF files, the lowest manylinux tag that their symbol versions allow, else ``linux_MACHINE``.

    Raises:
        IntegrityError: files for several architectures.
    """
    machine = single_machine(elfs)
    if machine is None:
        return "any"
    policy = lowest_policy(symbol_needs(elfs), policies, machine)
    return f"{policy.name if policy else 'linux'}_{machine}"


def single_machine(elfs: Mapping[str, ElfFacts]) -> str | None:
    """The architecture that all host files share, ``None`` where there are no such files.

    Raises:
        IntegrityError: there are several.
    """
    examples = {facts.architecture: path for path, facts in sorted(elfs.items(), reverse=True) if facts.architecture}
    if len(examples) > 1:
        hint = "package these files in separate wheels, one for each architecture"
        raise IntegrityError(
            *(
                Problem(
                    key=path,
                    message=f"the file is for {machine}, but other files are for a different processor",
                    hint=hint,
                )
                for machine, path in sorted(examples.items())
            )
        )
    return next(iter(examples), None)


def needs_cpython(path: str, facts: ElfFacts) -> bool:
    """Whether only CPython can load a file: by its undefined symbols, or because it is an extension module."""
    return bool(facts.python_symbols or facts.python_modules or _VERSIONED.search(path) or path.endswith(".abi3.so"))


def _python_tags(elfs: Mapping[str, ElfFacts], python: str | None) -> tuple[str, str]:
    """(python, abi) from the names of extension modules, else from the Python that they were built for."""
    bound = {path: facts for path, facts in elfs.items() if needs_cpython(path, facts)}
    if not bound:
        return "py3", "none"
    by_name = {tags: path for path in sorted(bound, reverse=True) if (tags := _tags_in_name(path))}
    if len(by_name) > 1:
        hint = "package these files in separate wheels, one for each Python version"
        raise IntegrityError(
            *(
                Problem(
                    key=path,
                    message=f"the file is for {tags[1]}, but other files are for a different Python",
                    hint=hint,
                )
                for tags, path in sorted(by_name.items())
            )
        )
    if by_name:
        return next(iter(by_name))
    found = _PYTHON.fullmatch(python or "")
    if found is None:
        path = min(bound)
        message = "the file needs CPython, but does not record which version it was built for"
        raise IntegrityError(
            Problem(key=path, message=message, hint="pass the Python version that the content was built for")
        )
    tag = f"cp{found[1]}{found[2]}"
    stable = all(path.endswith(".abi3.so") for path in bound) and not found[3]
    return tag, "abi3" if stable else tag + found[3]


def _tags_in_name(path: str) -> tuple[str, str] | None:
    """(python, abi) that the name of an extension module says: ``x.cpython-313t-x86_64-linux-gnu.so``."""
    found = _VERSIONED.search(path)
    return (f"cp{found[1]}{found[2]}", f"cp{found[1]}{found[2]}{found[3]}") if found else None
