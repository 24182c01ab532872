"""Rules about files that a wheel need not have: litter, copies, what only builders and testers use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.check.engine import Case, Found, Rule, listing
from axletree.check.rules.wheel.sample import FILENAME, plain_library, sample
from axletree.core.units import format_bytes
from axletree.package.wheel.scan import WheelMember

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.check.dist import DistFacts

_NOTABLE = 1 << 20
"""Bytes from which on waste is worth a finding."""
_COPY = 1 << 16
_TEST = re.compile(r"(?i:(?:^|[-_])(?:tests?|benchmarks?)(?:$|[-_.])|^(?:lib)?g(?:test|mock))|[a-z0-9]Tests?$")
_TEST_LIBRARY = re.compile(r"lib(?:gtest|gmock)(?:_main)?[-.]\S*|lib\S*_tests?\.so")
_LINK = (".a", ".la", ".lib", ".o", ".obj", ".debug", ".dwo", ".dwp", ".pdb")
_BYTECODE = re.compile(r"(?:^|/)__pycache__/[^/]+?(?:\.cpython-(\d+))?(?:\.opt-\d)?\.py[co]$")
_LITTER = frozenset(
    {
        *(".DS_Store", "Thumbs.db", "desktop.ini", "__MACOSX", ".idea", ".vscode", ".hg", ".svn", "CVS", ".tox"),
        *(".ipynb_checkpoints", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".coverage", ".eggs"),
        *("CMakeFiles", "CMakeCache.txt", ".ninja_log", ".ninja_deps"),
    }
)
_LITTER_ENDS = (".orig", ".rej", ".swo", ".swp", "~")
_NO_LITTER = ("package.json.orig", "package.json.rej", "/~")
"""What ends like it; a file may be called just ``~``."""
_PRIVATE_FOLDERS = frozenset({".git", ".aws", ".ssh", ".gnupg"})
_PRIVATE = frozenset(
    {
        *(".pypirc", ".netrc", ".htpasswd", ".git-credentials"),
        *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    }
)


def _total(sizes: Mapping[str, int], *, least: int, what: str, facts: DistFacts) -> Iterator[Found]:
    """One finding for files that together weigh enough; the largest come first as its evidence."""
    total = sum(sizes.values())
    if sizes and total >= least:
        paths = sorted(sizes, key=lambda path: (-sizes[path], path))
        number = "one file" if len(paths) == 1 else f"{len(paths)} files"
        where = paths[0] if len(paths) == 1 else facts.wheel.filename
        evidence = listing([f"{path}: {format_bytes(sizes[path])}" for path in paths])
        yield Found(where=where, message=f"it contains {number} ({format_bytes(total)}) {what}", evidence=evidence)


def _test_programs(facts: DistFacts) -> Iterator[Found]:
    paths: set[str] = set()
    for path, elf in facts.elfs.items():
        name = path.rpartition("/")[2]
        program = elf.interpreter is not None and _TEST.search(name) is not None
        if program or (not elf.python_modules and _TEST_LIBRARY.match(name)):
            paths.add(path)
    found = {member.path: member.size for member in facts.wheel.members if member.path in paths}
    yield from _total(found, least=_NOTABLE, what="that only tests run or load", facts=facts)


def _link_files(facts: DistFacts) -> Iterator[Found]:
    sizes = {member.path: member.size for member in facts.wheel.members if member.path.lower().endswith(_LINK)}
    yield from _total(sizes, least=_NOTABLE, what="that only linkers and debuggers read", facts=facts)


def _bytecode(facts: DistFacts) -> Iterator[Found]:
    python = re.fullmatch(r"cp(\d+)", facts.wheel.name.python)
    foreign, sizes = 0, {}
    for member in facts.wheel.members:
        found = _BYTECODE.search(member.path) if member.path.endswith((".pyc", ".pyo")) else None
        if found is not None:
            sizes[member.path] = member.size
            foreign += bool(python and found[1] and found[1] != python[1])
    what = "of compiled Python code" + (f", {foreign} of them for a different Python version" if foreign else "")
    yield from _total(sizes, least=0, what=what, facts=facts)


def _litter(facts: DistFacts) -> Iterator[Found]:
    sizes = {member.path: member.size for member in facts.wheel.members if _is_litter(member.path)}
    yield from _total(sizes, least=0, what="left behind by editors, systems or builds", facts=facts)


def _is_litter(path: str) -> bool:
    if not _LITTER.isdisjoint(path.split("/")):
        return True
    return path.endswith(_LITTER_ENDS) and not path.endswith(_NO_LITTER) and path != "~"


def _private(facts: DistFacts) -> Iterator[Found]:
    found = sorted(member.path for member in facts.wheel.members if _is_private(member.path))
    if found:
        number = "it belongs" if len(found) == 1 else f"it and {len(found) - 1} more belong"
        message = f"{number} to a repository or a home folder and may contain secrets"
        yield Found(where=found[0], message=message, evidence=listing(found))


def _is_private(path: str) -> bool:
    *folders, name = path.split("/")
    return name in _PRIVATE or not _PRIVATE_FOLDERS.isdisjoint(folders)


def _copies(facts: DistFacts) -> Iterator[Found]:
    groups: dict[tuple[str | int, int], list[str]] = {}
    for member in facts.wheel.members:
        content = member.sha256 or member.crc  # large files may have no hash; their size and CRC tell as well
        if content and member.size >= _COPY:
            groups.setdefault((content, member.size), []).append(member.path)
    copies = {paths[0]: (size * (len(paths) - 1), paths) for (_, size), paths in groups.items() if len(paths) > 1}
    total = sum(size for size, _ in copies.values())
    if total >= _NOTABLE:
        largest = sorted(copies.values(), key=lambda copy: -copy[0])
        evidence = tuple(f"{' = '.join(paths)}: {format_bytes(size)}" for size, paths in largest)
        message = f"{format_bytes(total)} of its content duplicates other files"
        yield Found(where=facts.wheel.filename, message=message, evidence=evidence)


_PROGRAM = plain_library(interpreter="/lib64/ld-linux-x86-64.so.2")


def _sample(*files: str, filename: str = FILENAME) -> DistFacts:
    return sample(filename=filename, elfs={}, files=files)


def _with_copies(first: str, second: str, *, crcs: tuple[int, int] = (0, 0)) -> DistFacts:
    facts = sample(elfs={})
    members = tuple(
        WheelMember(path=path, size=2 << 20, compressed=1 << 20, sha256=digest * 64, crc=crc)
        for path, digest, crc in (("demo/bin/tool-1.2", first, crcs[0]), ("demo/bin/tool", second, crcs[1]))
    )
    return sample(elfs={}, wheel={"members": (*facts.wheel.members[:1], *members)})


CONTENT_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/test-programs",
        severity="warning",
        title="The wheel contains test programs",
        why="Only the build runs them, but every user downloads them. They often need libraries that users do not "
        "have, which restricts the platform tag of the whole wheel.",
        fix="install them in a separate component, or exclude them when you pack the wheel",
        check=_test_programs,
        cases=lambda: (
            Case(title="bin/test_api", facts=sample(elfs={"demo/bin/test_api": _PROGRAM}), fires=True),
            Case(title="libgtest.so", facts=sample(elfs={"demo/lib/libgtest.so": plain_library()}), fires=True),
            Case(title="bin/protoc", facts=sample(elfs={"demo/bin/protoc": _PROGRAM}), fires=False),
            Case(title="bin/ctest, which is a tool", facts=sample(elfs={"demo/bin/ctest": _PROGRAM}), fires=False),
            Case(
                title="an extension module that tests import",
                facts=sample(elfs={"demo/_umath_tests.cpython-311-x86_64-linux-gnu.so": plain_library()}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/link-files",
        severity="info",
        title="The wheel contains static libraries, object files or debug files",
        why=(
            "No program reads them at run time. Developers who build against the package may need them, but "
            "every user downloads them."
        ),
        fix="move them to a development package, or exclude them when you pack the wheel",
        check=_link_files,
        cases=lambda: (
            Case(title="a 1 MB static library", facts=_sample("demo/lib/libdemo.a"), fires=True),
            Case(title="a program database", facts=_sample("demo/_core.pdb"), fires=True),
            Case(title="Python files", facts=_sample("demo/a.py", "demo/pda.json"), fires=False),
        ),
    ),
    Rule(
        id="dist/bytecode",
        severity="info",
        title="The wheel contains compiled Python files",
        why=(
            "Installers compile Python files themselves and replace these. Python never reads files compiled for "
            "a different version."
        ),
        fix="delete `__pycache__` before you pack the wheel",
        check=_bytecode,
        cases=lambda: (
            Case(
                title=("files for the wheel's Python version"),
                facts=_sample("demo/__pycache__/a.cpython-311.pyc"),
                fires=True,
            ),
            Case(
                title=("files for a different Python version"),
                facts=_sample("demo/__pycache__/a.cpython-39.opt-1.pyc"),
                fires=True,
            ),
            Case(title="a module without source code", facts=_sample("demo/secret.pyc"), fires=False),
        ),
    ),
    Rule(
        id="dist/litter",
        severity="info",
        title="The wheel contains files left behind by editors, systems or builds",
        why="The files are useless to users and reveal details of the build machine.",
        fix="build from a clean checkout; list package data by pattern instead of including whole folders",
        check=_litter,
        cases=lambda: (
            Case(title=".DS_Store", facts=_sample("demo/.DS_Store"), fires=True),
            Case(title="an editor's backup file", facts=_sample("demo/core.py~"), fires=True),
            Case(title="files left behind by patch", facts=_sample("demo/core.py.orig"), fires=True),
            Case(title="CMake's cache", facts=_sample("demo/CMakeFiles/x.json"), fires=True),
            Case(title=".gitignore", facts=_sample("demo/.gitignore"), fires=False),
            Case(title="JupyterLab's schemas", facts=_sample("demo/schemas/package.json.orig"), fires=False),
        ),
    ),
    Rule(
        id="dist/private-files",
        severity="warning",
        title="The wheel contains files that may contain secrets",
        why=(
            "A repository's configuration contains addresses and sometimes tokens, and a published wheel cannot "
            "be recalled."
        ),
        fix="remove the files, and replace every secret that they contained",
        check=_private,
        cases=lambda: (
            Case(title="a git repository", facts=_sample("demo/.git/config", "demo/.git/HEAD"), fires=True),
            Case(title=".pypirc", facts=_sample("demo/.pypirc"), fires=True),
            Case(title=".gitignore and certificates", facts=_sample("demo/.gitignore", "demo/cacert.pem"), fires=False),
        ),
    ),
    Rule(
        id="dist/copies",
        severity="info",
        title="The wheel contains the same content several times",
        why="A wheel cannot contain symbolic links, so each link to a library or program becomes a full copy.",
        fix="keep only the name that is used (for a library, its SONAME)",
        check=_copies,
        cases=lambda: (
            Case(title="a program under two names", facts=_with_copies("a", "a"), fires=True),
            Case(
                title=("a large program under two names, without a hash"),
                facts=_with_copies("", "", crcs=(7, 7)),
                fires=True,
            ),
            Case(title="two different programs of the same size", facts=_with_copies("a", "b"), fires=False),
            Case(
                title=("two large programs of the same size, without hashes"),
                facts=_with_copies("", "", crcs=(7, 8)),
                fires=False,
            ),
        ),
    ),
)
