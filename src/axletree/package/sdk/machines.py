"""Which ELF files of an SDK run on the machine that it is for. All others are data: they load nothing there."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from axletree.binary.elf.facts import ElfFacts
from axletree.core.units import some_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN = 3


class HostFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The ELF files of one machine."""

    machine: str | None
    """As platform tags spell it; ``None`` where there is no host code."""
    facts: dict[str, ElfFacts]
    """Where its content lies -> facts."""
    notes: tuple[str, ...]
    """What is there for other machines."""


def host_files(facts: Mapping[str, ElfFacts], paths: Mapping[str, str]) -> HostFiles:
    """Tell the files of the machine that most are for from all others.

    Compilers bring libraries of sanitizers for 32 bits, profilers bring programs for the machines that they measure,
    and code objects of GPUs are ELF files as well.

    Args:
        facts: where its content lies -> facts of each ELF file.
        paths: where its content lies -> path below the prefix, for notes.
    """
    counts = Counter(each.architecture for each in facts.values() if each.dynamic and each.architecture is not None)
    machine = min(counts, key=lambda name: (-counts[name], name), default=None)
    why = f"but the SDK is for {machine}, so they are packed unchanged"
    strangers: dict[str, list[str]] = {}
    for source, each in facts.items():
        if machine is not None and each.architecture not in {None, machine} and each.kind in {"executable", "shared"}:
            strangers.setdefault(each.architecture or "", []).append(paths[source])
    return HostFiles(
        machine=machine,
        facts={source: each for source, each in facts.items() if each.architecture and each.architecture == machine},
        notes=tuple(
            f"{some_of(sorted(found), _SHOWN)}: for {name}, {why}" for name, found in sorted(strangers.items())
        ),
    )
