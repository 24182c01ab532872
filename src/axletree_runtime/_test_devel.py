"""Tests of the expanded devel tree: it holds all that packages for run time have, and one answer says where it is."""

from __future__ import annotations

import filecmp
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._elf import read_elf
from ._sdk import FILE, find_root
from ._test_closure import known_libraries
from ._test_commands import run_own_command
from ._testing import PASSED, Case, NoTreeError, failed, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sdk import SdkPackage
    from ._testing import Bench, Outcome

_LARGEST_LAUNCHER = 1 << 16


def devel_cases(bench: Bench) -> Iterator[Case]:
    """Tests of the tree."""
    devel = bench.sdk.devel_package()
    if devel is None or bench.sdk.devel_module() is None:
        return
    yield Case("devel", devel.dist, "expansion", partial(_expansion, bench))
    yield Case("devel", devel.dist, "roots", partial(_roots, bench))
    yield Case("devel", devel.dist, "links", partial(_links, bench))
    yield Case("devel", devel.dist, "names of libraries", partial(_names, bench))
    for package, folder in bench.installed.items():
        if package.kind != "tests":
            yield Case("devel", devel.dist, f"holds {package.dist}", partial(_mirror, bench, package, folder))


def _expansion(bench: Bench) -> Outcome:
    try:
        bench.tree()
    except NoTreeError as error:
        return failed(f"the devel tree cannot be expanded: {error}", f"see {bench.sdk.file.command} doctor")
    return PASSED


def _roots(bench: Bench) -> Outcome:
    """Whoever asks where the SDK is gets the same answer."""
    root = bench.tree()
    sdk = bench.sdk
    problems = []
    for option, below in (("--root", ""), ("--bin", sdk.file.bin), ("--cmake", sdk.file.cmake)):
        status, said = run_own_command(bench, "path", option)
        wanted = root / below
        if status or Path(said.strip()) != wanted:
            problems.append(f"path {option} prints {said.strip()!r} with exit code {status}, expected {wanted}")
        elif not wanted.is_dir():
            problems.append(f"{wanted} is not a folder")
    found, _ = find_root(sdk)
    if found != root:
        problems.append(f"programs are started from {found}, not from {root}")
    return some(problems, f"{sdk.file.command} repair")


def _links(bench: Bench) -> Outcome:
    """No link leads nowhere, or out of the SDK."""
    root = bench.tree()
    inside = [root.resolve(), *(folder.resolve() for folder in bench.installed.values())]
    problems = []
    for path in _walk(root):
        if path.is_symlink():
            end = path.resolve() if path.exists() else None
            if end is None:
                problems.append(f"{path.relative_to(root)} points to {os.readlink(path)}, which does not exist")  # noqa: PTH115
            elif not any(end == place or place in end.parents for place in inside):
                problems.append(f"{path.relative_to(root)} points outside the SDK, to {end}")
    return some(problems, f"{bench.sdk.file.command} repair")


def _names(bench: Bench) -> Outcome:
    """All names of a library, such as that without a version which linkers look for, lead to the one that is loaded."""
    root = bench.tree()
    problems = []
    for each in known_libraries(bench):
        place = root / each.library.path
        stem = each.library.soname.partition(".so")[0]
        same = [known.path for known in known_libraries(bench) if known.library.soname == each.library.soname]
        for path in sorted(place.parent.glob(f"{_literal(stem)}.so*")):
            try:
                elf = read_elf(path) if path.is_file() else None
            except ValueError as error:
                problems.append(str(error))
                continue
            if elf is None or elf.soname != each.library.soname or any(_is_equal(path, known) for known in same):
                continue
            problems.append(f"{path.relative_to(root)} is different from the {each.library.soname} in {each.dist}")
    return some(list(dict.fromkeys(problems)), f"{bench.sdk.file.command} repair")


def _literal(text: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def _mirror(bench: Bench, package: SdkPackage, folder: Path) -> Outcome:
    """Each file of a package is in the tree: the same one, or one of equal content."""
    root = bench.tree()
    others = [place for each, place in bench.installed.items() if package.targets and each.targets and place != folder]
    problems = []
    for path in _walk(folder):
        name = path.relative_to(folder)
        mirrored = root / name
        if path.is_symlink() or name.name in ("__init__.py", FILE) or name.suffix == ".pyc":
            continue
        if not mirrored.exists():
            problems.append(f"{name} is not in the devel tree")
        elif not any(_is_equal(mirrored, place / name) for place in (folder, *others)) and not _starts(path, mirrored):
            problems.append(f"{name} in the devel tree differs from {package.dist}")
    return some(problems, f"{bench.sdk.file.command} repair")


def _is_equal(one: Path, other: Path) -> bool:
    if not other.is_file():
        return False
    return one.samefile(other) or filecmp.cmp(one, other, shallow=False)


def _starts(launcher: Path, mirrored: Path) -> bool:
    """Whether a small program stands in a package where the tree has a link: wheels have none."""
    if not mirrored.is_symlink() or launcher.stat().st_size > _LARGEST_LAUNCHER:
        return False
    try:
        elf = read_elf(launcher)
    except ValueError:
        return False
    return elf is not None and not elf.needed


def _walk(folder: Path) -> Iterator[Path]:
    """Files and links below a folder, without those that Python writes."""
    for above, folders, names in os.walk(folder):
        links = [name for name in folders if Path(above, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in links and name != "__pycache__")
        yield from (Path(above, name) for name in sorted((*links, *names)))
