"""What is said of libraries that a tree takes in: which, whose, how large; and of patterns that take nothing in."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from axletree.core.findings import Finding
from axletree.core.units import format_bytes, some_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.libraries.graft import Graft
    from axletree.package.relocation.links import LinkChanges
    from axletree.recipe.relocation import Relocate


_SHOWN = 3


def taken_text(grafts: Sequence[Graft]) -> str:
    """``copies 1 library, 133 kB: libyaml-0.so.2 (libyaml-0-2 0.2.5-1, 133 kB)``, the largest ones by name."""
    count = f"{len(grafts)} {'library' if len(grafts) == 1 else 'libraries'}"
    named = [f"{name} ({whose}, {size})" for name, whose, size in _largest_first(grafts)]
    return f"copies {count}, {format_bytes(sum(graft.library.size for graft in grafts))}: {some_of(named, _SHOWN)}"


def _largest_first(grafts: Iterable[Graft]) -> Iterator[tuple[str, str, str]]:
    """SONAME, the system's package or else the file, size."""
    for each in sorted((graft.library for graft in grafts), key=lambda library: (-library.size, library.soname)):
        yield each.soname, f"{each.package} {each.version}".strip() or each.origin, format_bytes(each.size)


def taken_in(grafts: Sequence[Graft], rules: Relocate) -> Iterator[Finding]:
    """One finding that lists them, largest first."""
    if not grafts:
        return
    yield Finding(
        rule="relocate/taken-in",
        severity="info",
        where=rules.graft_to or ".",
        message="libraries were copied from the build machine into the tree",
        evidence=tuple(f"{name}: {whose}, {size}" for name, whose, size in _largest_first(grafts)),
    )


def idle_patterns(links: LinkChanges, rules: Relocate, elfs: Iterable[ElfFacts]) -> Iterator[Finding]:
    """Patterns of ``graft`` that take nothing in: a warning where a library is needed that fits, and stays outside."""
    taken = {graft.library.soname for graft in links.grafts}
    needed = {soname for facts in elfs for soname in facts.needed} | {each.soname for each in links.outside}
    for pattern in rules.graft:
        fitting = sorted(soname for soname in needed | taken if fnmatchcase(soname, pattern))
        if taken.intersection(fitting):
            continue
        left = [each for each in links.outside if each.soname in fitting]
        if left:
            yield Finding(
                rule="relocate/graft-idle",
                severity="warning",
                where=pattern,
                message=f"the graft pattern copied no library: {left[0].soname} is provided by {left[0].owner}",
                fix="remove the pattern from graft, or exclude the files that need the library",
                evidence=tuple(f"{path} needs {left[0].soname}" for path in left[0].files),
            )
        elif not fitting:
            yield Finding(
                rule="relocate/graft-idle",
                severity="info",
                where=pattern,
                message="the graft pattern copied no library: no file in the tree needs a matching one",
                fix="remove the pattern from graft, unless other variants need it",
            )
