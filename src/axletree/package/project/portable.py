"""Wheels for older systems than the one that builds: Zig's compiler, which brings headers and stubs of every glibc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.units import some_of

if TYPE_CHECKING:
    from axletree.package.project.model import Project

GLIBC = "2.17"
"""The oldest glibc that Zig links for, and the one of manylinux2014."""
MACHINES = ("x86_64",)
"""Machines for which this was tried."""
REQUIREMENT = "ziglang"
REPLACED = frozenset({"cc", "c++"})
"""Programs of the host that a build does not call then."""
_COMPILED = frozenset({"C", "C++", "Cython"})


def compilers(machine: str) -> dict[str, str]:
    """The variables that make a build compile and link for the old glibc."""
    target = f"{machine}-linux-gnu.{GLIBC}"
    return {"CC": f"python-zig cc -target {target}", "CXX": f"python-zig c++ -target {target}"}


def why_not(project: Project, machine: str) -> str | None:
    """Why Zig cannot make a wheel of a project portable, as the end of a sentence; ``None`` if it can."""
    others = [f"{each.value} ({each.place})" for each in project.languages if each.value not in _COMPILED]
    if project.gpu.torch is not None:
        place = project.gpu.torch.place
        needs = "whose libraries need a newer glibc and the GNU C++ library"
        return f"the project compiles against PyTorch ({place}), {needs}"
    if others:
        return f"the project contains {some_of(others, 3)}, but Zig compiles only C and C++"
    if not project.compiles:
        return "the project compiles nothing, so its wheel does not depend on glibc"
    if project.linked:
        names = [f"lib{each.value} ({each.place})" for each in project.linked]
        return f"the project links to {some_of(names, 3)} on this host, which requires this host's glibc"
    if machine not in MACHINES:
        return f"portable wheels are supported only on {' and '.join(MACHINES)}, but this machine is {machine}"
    return None
