"""Rules about files that a wheel need not have: litter, copies, what only builders and testers use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
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
        one = len(paths) == 1
        where = paths[0] if one else facts.wheel.filename
        number = "this is a file" if one else f"the wheel contains {len(paths)} files"
        evidence = listing([f"{path}: {format_bytes(sizes[path])}" for path in paths])
        yield Found(where, f"{number} ({format_bytes(total)}) {what}", evidence=evidence)


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
    others = "" if len(sizes) == 1 else f", {foreign} of them"
    what = "of compiled Python code" + (f"{others} for a different Python version" if foreign else "")
    yield from _total(sizes, least=0, what=what, facts=facts)


def _litter(facts: DistFacts) -> Iterator[Found]:
    sizes = {member.path: member.size for member in facts.wheel.members if _is_litter(member.path)}
    yield from _total(sizes, least=0, what="left behind by editors, operating systems or builds", facts=facts)


def _is_litter(path: str) -> bool:
    if not _LITTER.isdisjoint(path.split("/")):
        return True
    return path.endswith(_LITTER_ENDS) and not path.endswith(_NO_LITTER) and path != "~"


def _private(facts: DistFacts) -> Iterator[Found]:
    found = sorted(member.path for member in facts.wheel.members if _is_private(member.path))
    if found:
        who = subject(found, "belongs", "belong")
        message = f"{who} to a repository or a home folder and may contain secrets"
        yield Found(found[0], message, evidence=listing(found))


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
        message = f"{format_bytes(total)} of the content duplicates other files"
        yield Found(facts.wheel.filename, message, evidence=evidence)


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
        why="Only the build runs these programs, but every user downloads them. They often need libraries that users "
        "do not "
        "have, which restricts the platform tag of the whole wheel.",
        fix="install the test programs in a separate component, or exclude them when you pack the wheel",
        check=_test_programs,
        cases=lambda: (
            fires("bin/test_api", sample(elfs={"demo/bin/test_api": _PROGRAM})),
            fires("libgtest.so", sample(elfs={"demo/lib/libgtest.so": plain_library()})),
            silent("bin/protoc", sample(elfs={"demo/bin/protoc": _PROGRAM})),
            silent("bin/ctest, which is a tool", sample(elfs={"demo/bin/ctest": _PROGRAM})),
            silent(
                "an extension module that tests import",
                sample(elfs={"demo/_umath_tests.cpython-311-x86_64-linux-gnu.so": plain_library()}),
            ),
        ),
    ),
    Rule(
        id="dist/link-files",
        severity="info",
        title="The wheel contains static libraries, object files or debug files",
        why="No program reads these files at run time. Developers who build against the package may need them, but "
        "every user downloads them.",
        fix="move the files to a development package, or exclude them when you pack the wheel",
        check=_link_files,
        cases=lambda: (
            fires("a 1 MB static library", _sample("demo/lib/libdemo.a")),
            fires("a program database", _sample("demo/_core.pdb")),
            silent("Python files", _sample("demo/a.py", "demo/pda.json")),
        ),
    ),
    Rule(
        id="dist/bytecode",
        severity="info",
        title="The wheel contains compiled Python files",
        why="Installers compile Python files themselves and replace these. Python never reads files compiled for "
        "a different version.",
        fix="delete `__pycache__` before you pack the wheel",
        check=_bytecode,
        cases=lambda: (
            fires("files for the wheel's Python version", _sample("demo/__pycache__/a.cpython-311.pyc")),
            fires("files for a different Python version", _sample("demo/__pycache__/a.cpython-39.opt-1.pyc")),
            silent("a module without source code", _sample("demo/secret.pyc")),
        ),
    ),
    Rule(
        id="dist/litter",
        severity="info",
        title="The wheel contains files left behind by editors, operating systems or builds",
        why="The files are useless to users and reveal details of the build machine.",
        fix="build from a clean checkout; list package data by pattern instead of including whole folders",
        check=_litter,
        cases=lambda: (
            fires(".DS_Store", _sample("demo/.DS_Store")),
            fires("an editor's backup file", _sample("demo/core.py~")),
            fires("files left behind by patch", _sample("demo/core.py.orig")),
            fires("CMake's cache", _sample("demo/CMakeFiles/x.json")),
            silent(".gitignore", _sample("demo/.gitignore")),
            silent("JupyterLab's schemas", _sample("demo/schemas/package.json.orig")),
        ),
    ),
    Rule(
        id="dist/private-files",
        severity="warning",
        title="The wheel contains files that may contain secrets",
        why="A repository's configuration contains addresses and sometimes tokens, and a published wheel cannot "
        "be recalled.",
        fix="remove the files, and replace every secret that they contained",
        check=_private,
        cases=lambda: (
            fires("a git repository", _sample("demo/.git/config", "demo/.git/HEAD")),
            fires(".pypirc", _sample("demo/.pypirc")),
            silent(".gitignore and certificates", _sample("demo/.gitignore", "demo/cacert.pem")),
        ),
    ),
    Rule(
        id="dist/copies",
        severity="info",
        title="The wheel contains the same content several times",
        why="A wheel cannot contain symbolic links, so each link to a library or program becomes a full copy.",
        fix="keep only the file whose name is used (for a library, its SONAME)",
        check=_copies,
        cases=lambda: (
            fires("a program under two names", _with_copies("a", "a")),
            fires("a large program under two names, without a hash", _with_copies("", "", crcs=(7, 7))),
            silent("two different programs of the same size", _with_copies("a", "b")),
            silent("two large programs of the same size, without hashes", _with_copies("", "", crcs=(7, 8))),
        ),
    ),
)
