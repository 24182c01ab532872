"""Proof that a relocated tree loads: from what was written, by the loader's rules, and nothing of the build is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import Problem
from axletree.package.libraries.linkage import is_loader, search_path
from axletree.package.libraries.loading import find_library, follow_loading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from axletree.binary.elf.facts import ElfFacts

_EXCERPT = 120


def loading_problems(
    files: Mapping[str, ElfFacts],
    siblings: Mapping[str, ElfFacts],
    *,
    outside: Collection[str],
    opens: Mapping[str, Iterable[str]],
) -> tuple[Problem, ...]:
    """What a tree's files would not find, each file loaded first in a process of its own.

    Args:
        files: path -> facts of the tree as it was written.
        siblings: the same of the trees that it is installed beside.
        outside: SONAMEs that are brought from elsewhere.
        opens: path -> libraries of the trees that the file opens by name.
    """
    everything = {**siblings, **files}
    roots = {path: facts for path, facts in files.items() if facts.architecture and facts.dynamic}
    return tuple(
        dict.fromkeys(
            problem
            for path, facts in roots.items()
            for problem in (
                *_lost(path, files, everything, outside),
                *_unopened(path, facts, everything, opens.get(path, ())),
                *_foreign(path, facts),
            )
        )
    )


def _lost(
    path: str, files: Mapping[str, ElfFacts], everything: Mapping[str, ElfFacts], outside: Collection[str]
) -> Iterator[Problem]:
    for soname, user in follow_loading(everything, path).missing:
        if user in files and soname not in outside and not is_loader(soname):
            where = _where(user, everything[user])
            yield Problem(file=user, key=soname, message=f"the loader cannot find this library {where}")


def _unopened(
    path: str, facts: ElfFacts, everything: Mapping[str, ElfFacts], names: Iterable[str]
) -> Iterator[Problem]:
    """It may be loaded first, so it must reach what it opens by itself or through what it brings along."""
    loaded = {reach.soname: reach.path for reach in follow_loading(everything, path).found}
    for name in names:
        if find_library(everything, path, name, loaded=loaded) is None:
            where = _where(path, facts)
            message = f"the file opens this library at run time, but the loader cannot find it {where}"
            yield Problem(file=path, key=name, message=message)


def _foreign(path: str, facts: ElfFacts) -> Iterator[Problem]:
    for entry in search_path(path, facts):
        if entry.kind != "origin" or (entry.folder or "").startswith(".."):
            yield Problem(file=path, message=f"the file has a search path entry outside the package: {entry.text!r}")


def _where(path: str, facts: ElfFacts) -> str:
    folders = [entry.folder or entry.text for entry in search_path(path, facts)]
    return f"in {', '.join(folders)}" if folders else "because the file has no search path"


def build_path_problems(texts: Iterable[tuple[str, str]], roots: Iterable[str]) -> Iterator[Problem]:
    """Lines of text files that name a folder of the build.

    Args:
        texts: (path, text) of files that others read by machine: CMake and pkg-config files, Python.
        roots: absolute folders.
    """
    wanted = tuple(roots)
    for path, text in texts:
        if not any(root in text for root in wanted):
            continue
        for number, line in enumerate(text.split("\n"), start=1):
            if any(root in line for root in wanted):
                yield Problem(
                    file=path,
                    line=number,
                    message="the file refers to a folder that exists only on the build machine",
                    excerpt=line.strip()[:_EXCERPT],
                    hint="edit the line with [[...relocate.edits]], or drop the file",
                )
