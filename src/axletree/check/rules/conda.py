"""Rules about conda packages: whether what a package says of itself is what it holds."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Case, Found, Rule, listing
from axletree.package.conda.check import CondaIssue, Kind, check_conda
from axletree.package.conda.info import IndexJson, PathEntry
from axletree.package.conda.reader import CondaFacts, CondaMember

if TYPE_CHECKING:
    from collections.abc import Iterator


class CheckedConda(msgspec.Struct, frozen=True, kw_only=True):
    """A package, and what comparing it with itself gave."""

    facts: CondaFacts
    issues: tuple[CondaIssue, ...]


def observe_conda(facts: CondaFacts) -> CheckedConda:
    """What the rules look at."""
    return CheckedConda(facts=facts, issues=check_conda(facts))


def _found(checked: CheckedConda, *, kinds: tuple[Kind, ...]) -> Iterator[Found]:
    """One finding for what is wrong in the same way, with all places."""
    issues = [issue for issue in checked.issues if issue.kind in kinds]
    if issues:
        first = issues[0]
        others = len(issues) - 1
        more = f", and {others} more like it" if others else ""
        lines = listing([f"{issue.path}: {issue.detail}" if issue.path else issue.detail for issue in issues])
        yield Found(where=first.path or first.package, message=f"{first.detail}{more}", evidence=lines)


_DATA = b"x = 1\n"
_DIGEST = hashlib.sha256(_DATA).hexdigest()
_SITE = "lib/python3.11/site-packages"


def _member(path: str, **fields: object) -> CondaMember:
    given = {"path": path, "kind": "file", "size": len(_DATA), "sha256": _DIGEST} | fields
    return msgspec.convert(given, CondaMember)


def _line(path: str, **fields: object) -> PathEntry:
    given = {"_path": path, "path_type": "hardlink", "size_in_bytes": len(_DATA), "sha256": _DIGEST} | fields
    return msgspec.convert(given, PathEntry)


def _sample(members: tuple[CondaMember, ...] = (), lines: tuple[PathEntry, ...] = (), **fields: object) -> CheckedConda:
    """A sound package with one module, and what is given."""
    index = IndexJson(name="demo", version="1.0", build="py311_0", build_number=0, subdir="linux-64")
    module = f"{_SITE}/demo.py"
    facts = CondaFacts(
        filename="demo-1.0-py311_0.conda",
        name="demo",
        version="1.0",
        build="py311_0",
        size=1000,
        index=index,
        paths=(_line(module), *lines),
        members=(_member(module), *members),
    )
    return observe_conda(msgspec.structs.replace(facts, **fields))


_WINDOWS = IndexJson(name="demo", version="1.0", build="py311_0", build_number=0, subdir="win-64")
_PREFIX = "/opt/build" + "_" * 245

CONDA_RULES: tuple[Rule[CheckedConda], ...] = (
    Rule(
        id="conda/info-unreadable",
        severity="error",
        title="Metadata in `info/` is missing or damaged",
        why="Solvers read `info/index.json` and installers `info/paths.json`; without them nobody can say what the "
        "package needs or check what was unpacked.",
        fix="build the package again with a tool that writes format 2 packages (CEP 34)",
        check=partial(_found, kinds=("unreadable",)),
        cases=lambda: (
            Case(title="no `info/paths.json`", facts=_sample(paths=None), fires=True),
            Case(
                title="an `index.json` that is not JSON",
                facts=_sample(unreadable=("info/index.json: no JSON",)),
                fires=True,
            ),
            Case(title="both are there", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/name",
        severity="error",
        title="The file is not called what the package says it is",
        why="Solvers go by the name in the channel's index, installers by the one inside. Where they differ, updates, "
        "pins and removals miss the package.",
        fix="name it NAME-VERSION-BUILD.conda, as `info/index.json` has them",
        check=partial(_found, kinds=("name",)),
        cases=lambda: (
            Case(title="another version inside", facts=_sample(version="1.1"), fires=True),
            Case(title="the same", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/path-unsafe",
        severity="error",
        title="A path is outside the prefix",
        why="Installing the package could write or replace any file of the user. Absolute paths, `..`, and files below "
        "a symbolic link of the package all can.",
        fix="do not install it; get it again from where it was made",
        check=partial(_found, kinds=("unsafe",)),
        cases=lambda: (
            Case(title="`../x`", facts=_sample((_member("../x"),), (_line("../x"),)), fires=True),
            Case(title="a file below the prefix", facts=_sample((_member("bin/x"),), (_line("bin/x"),)), fires=False),
        ),
    ),
    Rule(
        id="conda/link",
        severity="error",
        title="A link has no end inside of the package's prefix",
        why=(
            "A symbolic link that is absolute or leaves the prefix points to a different file on each machine, or to "
            "none; a hard link to a missing file cannot be unpacked."
        ),
        fix="make links relative, to a place below the prefix",
        check=partial(_found, kinds=("link",)),
        cases=lambda: (
            Case(
                title="an absolute link",
                facts=_sample(
                    (_member("lib/x", kind="link", target="/usr/lib/x", sha256=""),),
                    (_line("lib/x", path_type="softlink", sha256=None, size_in_bytes=None),),
                ),
                fires=True,
            ),
            Case(
                title="a relative link",
                facts=_sample(
                    (_member("lib/x", kind="link", target="x.1", sha256=""),),
                    (_line("lib/x", path_type="softlink", sha256=None, size_in_bytes=None),),
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="conda/path-twice",
        severity="error",
        title="A path occurs twice",
        why="Which of the two is installed depends on the installer, and the recorded hash fits one of them at most.",
        fix="pack each file once",
        check=partial(_found, kinds=("twice",)),
        cases=lambda: (
            Case(title="two lines for one path", facts=_sample((_member("bin/x"),), (_line("bin/x"),) * 2), fires=True),
            Case(title="each path once", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/case-collision",
        severity="warning",
        title="Paths differ only in upper and lower case",
        why="macOS and Windows silently keep one of the two.",
        fix="rename one of them",
        check=partial(_found, kinds=("case",)),
        cases=lambda: (
            Case(
                title="`Lib/x` and `lib/x` for Windows",
                facts=_sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x")), index=_WINDOWS),
                fires=True,
            ),
            Case(
                title="the same for Linux, which tells them apart",
                facts=_sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x"))),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="conda/file-missing",
        severity="error",
        title="A file that `paths.json` lists is not in the archive",
        why="Installers link the listed files, and stop halfway if one is missing.",
        fix="build the package again",
        check=partial(_found, kinds=("missing",)),
        cases=lambda: (
            Case(title="listed only", facts=_sample((), (_line("bin/x"),)), fires=True),
            Case(title="listed and there", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/file-unlisted",
        severity="warning",
        title="A file is in the archive, but not in every list of files",
        why=(
            "Installers use `paths.json`, older ones `info/files`: a file in only one of them is installed for some "
            "users only, and left behind on removal."
        ),
        fix="build the package again, so that both lists are made from its content",
        check=partial(_found, kinds=("extra", "files")),
        cases=lambda: (
            Case(title="not in `paths.json`", facts=_sample((_member("bin/x"),)), fires=True),
            Case(title="not in `info/files`", facts=_sample(files=()), fires=True),
            Case(title="in both", facts=_sample(files=(f"{_SITE}/demo.py",)), fires=False),
        ),
    ),
    Rule(
        id="conda/content-differs",
        severity="error",
        title="A file is not what `paths.json` says",
        why="Size, hash or kind differ: the archive was changed after it was made, or its tool recorded something "
        "else. Installers that verify refuse it.",
        fix="do not install it; get it again from where it was made, or build it again",
        check=partial(_found, kinds=("size", "hash", "type")),
        cases=lambda: (
            Case(
                title="another hash",
                facts=_sample((_member("bin/x", sha256="0" * 64),), (_line("bin/x"),)),
                fires=True,
            ),
            Case(title="another size", facts=_sample((_member("bin/x", size=7),), (_line("bin/x"),)), fires=True),
            Case(title="as listed", facts=_sample((_member("bin/x"),), (_line("bin/x"),)), fires=False),
        ),
    ),
    Rule(
        id="conda/prefix",
        severity="error",
        title="The build prefix is not replaced, or replaced wrongly",
        why=(
            "A file that contains its build path looks for its data on the build machine. Binaries treated as text "
            "change their length and break."
        ),
        fix="build again with a tool that detects prefixes in texts and binaries, or make the file relocatable",
        check=partial(_found, kinds=("prefix",)),
        cases=lambda: (
            Case(
                title="a binary with the prefix, listed as text",
                facts=_sample(
                    (_member("bin/x", prefix="binary"),),
                    (_line("bin/x", prefix_placeholder=_PREFIX, file_mode="text"),),
                ),
                fires=True,
            ),
            Case(
                title="a text with the prefix, listed so",
                facts=_sample(
                    (_member("bin/x", prefix="text"),),
                    (_line("bin/x", prefix_placeholder=_PREFIX, file_mode="text"),),
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="conda/compiled-for-another",
        severity="warning",
        title="A compiled Python file is for another Python, or none is wanted",
        why="The Python of its folder never reads it, and packages built for several Pythons clash over it. For "
        "`noarch: python` packages the installer compiles.",
        fix="compile with the Python that the package is for, in a clean build folder",
        check=partial(_found, kinds=("pyc",)),
        cases=lambda: (
            Case(
                title="Python 3.14's file for Python 3.11",
                facts=_sample(
                    (_member(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                    (_line(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                ),
                fires=True,
            ),
            Case(
                title="Python 3.11's file for Python 3.11",
                facts=_sample(
                    (_member(f"{_SITE}/__pycache__/demo.cpython-311.pyc"),),
                    (_line(f"{_SITE}/__pycache__/demo.cpython-311.pyc"),),
                ),
                fires=False,
            ),
        ),
    ),
)
"""Every rule over :class:`CheckedConda`."""
