"""Rules about the libraries that a wheel's files need: who brings each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, listing, subject
from axletree.check.rules.wheel.linkage_cases import (
    driver_cases,
    host_cases,
    libpython_cases,
    optional_cases,
    sibling_cases,
    stale_cases,
    uncertain_cases,
    undeclared_cases,
    unresolved_cases,
)
from axletree.core.grouping import grouped
from axletree.core.units import some_of
from axletree.package.libraries.demand import find_roots
from axletree.package.libraries.linkage import is_loader, library_paths

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.check.dist import DistFacts
    from axletree.package.libraries.linkage import Need


_SHOWN = 6
"""Names of libraries that a message lists."""


def _needing(need: Need) -> str:
    return f"{need.soname}, which {subject(need.files, 'needs', 'need')}"


def _unresolved(facts: DistFacts) -> Iterator[Found]:
    """One finding for all that the same files lack."""
    groups = grouped(
        ((need.files, facts.promises.get(need.soname)), need)
        for need in facts.needs
        if need.owner == "nobody" and not need.why
    )
    for (files, tag), needs in groups.items():
        _, libraries = _together(needs)
        message = f"no distribution provides {libraries}, which {subject(files, 'needs', 'need')}"
        them = "them" if len(needs) > 1 else "it"
        fix = (
            f"tag the wheel {tag}, the first tag that promises {libraries}, or copy {them} into the wheel"
            if tag
            else None
        )
        yield Found(files[0], message, evidence=listing(files), fix=fix)


def _uncertain(facts: DistFacts) -> Iterator[Found]:
    for need in facts.needs:
        if need.owner == "nobody" and need.why:
            message = f"no distribution provides {_needing(need)}; {_why(need.files, need.why)}"
            yield Found(need.files[0], message, evidence=listing(need.files))


def _undeclared(facts: DistFacts) -> Iterator[Found]:
    if facts.wheel.metadata is None:
        return
    for by, files, libraries, evidence in _by_owner(facts, "undeclared"):
        message = (
            f"{by} provides {libraries}, which {subject(files, 'needs', 'need')}, but the wheel does not require {by}"
        )
        fix = f"add {_requirement(facts, by)}, with the version used for the build, to the package's requirements"
        yield Found(files[0], message, evidence=evidence, fix=fix)


def _requirement(facts: DistFacts, name: str) -> str:
    """How to require a provider: its first distribution's name, with what its other names look like."""
    provider = next((provider for provider in facts.providers if provider.name == name), None)
    if provider is None or len(provider.distributions) < 2:
        return name
    return f"{provider.distributions[0]} (or one of {', '.join(provider.distributions[1:])})"


def _by_owner(facts: DistFacts, owner: str) -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """(who brings libraries, the files that need them, the libraries as a text, the evidence)."""
    for by, needs in grouped((need.by, need) for need in facts.needs if need.owner == owner).items():
        yield by, *_together(needs), _who_needs(needs)


def _optional(facts: DistFacts) -> Iterator[Found]:
    groups = grouped(((need.by, need.why), need) for need in facts.needs if need.owner == "optional")
    for (by, why), needs in groups.items():
        files, libraries = _together(needs)
        who = by or "no known distribution"
        message = f"{subject(files, 'needs', 'need')} {libraries}, which {who} provides; {_why(files, why)}"
        yield Found(files[0], message, evidence=_who_needs(needs))


def _why(files: Sequence[str], why: str) -> str:
    """Why files may lack a library."""
    they = "the file is" if len(files) == 1 else "the files are"
    return {
        "alternative": f"{they} one of several alternatives"
        if len(files) == 1
        else f"{they} among several alternatives",
        "extra": "one of the wheel's extras requires it",
        "plug-in": f"{they} {'a plug-in' if len(files) == 1 else 'plug-ins'}",
        "binding": f"{they} {'a binding' if len(files) == 1 else 'bindings'} to that library",
    }[why]


def _together(needs: Sequence[Need]) -> tuple[tuple[str, ...], str]:
    """(files of all needs, their libraries as a text)."""
    files = tuple(sorted({path for need in needs for path in need.files}))
    names = list(dict.fromkeys(need.soname for need in needs))
    return files, some_of(names, _SHOWN, what="library")


def _who_needs(needs: Sequence[Need]) -> tuple[str, ...]:
    return listing([f"{path} needs {need.soname}" for need in needs for path in need.files])


def _sibling(facts: DistFacts) -> Iterator[Found]:
    for by, files, libraries, evidence in _by_owner(facts, "sibling"):
        one = f"one of {by}" if ", " in by else by
        message = f"{subject(files, 'needs', 'need')} {libraries}, which {one} must provide"
        yield Found(files[0], message, evidence=evidence)


def _host(facts: DistFacts) -> Iterator[Found]:
    for by, files, libraries, evidence in _by_owner(facts, "host"):
        message = f"{subject(files, 'needs', 'need')} {libraries} ({by})"
        yield Found(files[0], message, evidence=evidence)


def _driver(facts: DistFacts) -> Iterator[Found]:
    """A library that code opens by name may need the driver; what a plain import loads may not."""
    elfs = facts.elfs
    unused = {(need.soname, path) for need in facts.unused_drivers for path in need.files}  # another rule's
    opened = {path for path in find_roots(elfs) if not elfs[path].python_modules and elfs[path].interpreter is None}
    for need in facts.needs:
        files = tuple(path for path in need.files if path not in opened and (need.soname, path) not in unused)
        if need.owner == "driver" and files:
            message = f"{subject(files, 'needs', 'need')} {need.soname} from the {need.by}"
            yield Found(files[0], message, evidence=listing(files))


def _libpython(facts: DistFacts) -> Iterator[Found]:
    if any(platform.system == "android" for platform in facts.platforms):
        return  # there extension modules must be linked to it (PEP 738)
    for need in facts.needs:
        if need.owner == "python":
            message = f"{subject(need.files, 'is', 'are')} linked to {need.soname}"
            yield Found(need.files[0], message, evidence=listing(need.files))


def _stale_versions(facts: DistFacts) -> Iterator[Found]:
    elfs = facts.elfs
    strictest = facts.strictest
    system = strictest.policy.libraries if strictest and strictest.policy else frozenset[str]()
    known = {need.soname for need in facts.needs} | library_paths(elfs).keys() | system
    for path, elf in elfs.items():
        for need in elf.versions_needed:
            if need.file in known or is_loader(need.file):
                continue
            message = (
                f"this file needs symbol versions from {need.file}, which no file in the wheel lists as a needed "
                "library"
            )
            yield Found(path, message, evidence=tuple(f"needed: {name}" for name in elf.needed))


LINKAGE_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/needed-unresolved",
        severity="error",
        title="No distribution provides a needed library",
        why="Importing fails with `cannot open shared object file` on every machine that does not happen to have "
        "the library.",
        fix="copy the library into the wheel (`axletree repair`), or name the distribution that provides it "
        "(`--provided-by`, `provided-by`) and require it",
        check=_unresolved,
        cases=unresolved_cases,
    ),
    Rule(
        id="dist/provider-undeclared",
        severity="error",
        title="The wheel does not require a distribution that it needs",
        why="Installers do not know about the dependency, so the import works only if the distribution happens to "
        "be installed, in any version.",
        fix="add the distribution to the package's requirements",
        check=_undeclared,
        cases=undeclared_cases,
    ),
    Rule(
        id="dist/needed-uncertain",
        severity="warning",
        title="A plug-in or binding needs a library that no distribution provides",
        why="The wheel works without the file, so either the file is optional or the library was forgotten.",
        fix="add the library to the wheel, or leave the file out",
        check=_uncertain,
        cases=uncertain_cases,
    ),
    Rule(
        id="dist/driver-needed",
        severity="warning",
        title="Importing the package needs the GPU driver",
        why="On a machine without the driver (a laptop, a CI job, a login node), the whole import fails, including "
        "parts that do not need a GPU.",
        fix="load the driver's library by name when it is first used, or move the code that needs it to a library "
        "that is loaded only at that point, such as `libcaffe2_nvrtc.so`",
        check=_driver,
        cases=driver_cases,
    ),
    Rule(
        id="dist/libpython",
        severity="warning",
        title="A file is linked to libpython",
        why="Most Python interpreters are statically linked or keep libpython elsewhere, and manylinux forbids the "
        "link (PEP 513). Extension modules find CPython's symbols in the running process.",
        fix="link extension modules without libpython (in CMake, use `Python::Module` instead of `Python::Python`)",
        check=_libpython,
        cases=libpython_cases,
    ),
    Rule(
        id="dist/versions-stale",
        severity="error",
        title="Symbol versions refer to a library that is no longer needed",
        why="A tool renamed the needed library but not its entry in the version table, so the loader stops with "
        "a failed assertion.",
        fix="rename the library with `axletree repair`, which also updates the version table, or link the file again",
        check=_stale_versions,
        cases=stale_cases,
    ),
    Rule(
        id="dist/needed-optional",
        severity="info",
        title="Only some users need a library",
        why="The file that needs the library is an alternative, a plug-in or a binding, and the rest of the wheel "
        "works without it. Anyone who uses that file must install the library.",
        fix="add the library's provider to an extra of the package, so that users can install it",
        check=_optional,
        cases=optional_cases,
    ),
    Rule(
        id="dist/needed-sibling",
        severity="info",
        title="A required distribution must provide a library, but its files are unknown",
        why="The search path includes a folder in that distribution, so the import works if that folder contains "
        "the library.",
        fix="audit that distribution together with this wheel, and name it with `--provided-by`",
        check=_sibling,
        cases=sibling_cases,
    ),
    Rule(
        id="dist/needed-host",
        severity="info",
        title="The wheel needs system libraries that no platform tag promises",
        why="The libraries depend on the machine's hardware, network or desktop, so no wheel can provide them. On "
        "systems without them, such as small containers, files that need them cannot be loaded.",
        fix="list the required system packages in the installation guide",
        check=_host,
        cases=host_cases,
    ),
)
