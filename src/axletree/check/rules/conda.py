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
        more = f", and {others} more" if others else ""
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
        why="Solvers read `info/index.json` and installers read `info/paths.json`. Without these files, nothing "
        "records what the package needs or which files it should contain.",
        fix="rebuild the package with a tool that writes format 2 packages (CEP 34)",
        check=partial(_found, kinds=("unreadable",)),
        cases=lambda: (
            Case(title="no `info/paths.json`", facts=_sample(paths=None), fires=True),
            Case(
                title="an `index.json` that is not valid JSON",
                facts=_sample(unreadable=("info/index.json: not valid JSON",)),
                fires=True,
            ),
            Case(title="both files present", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/name",
        severity="error",
        title="The file name does not match the package's metadata",
        why="Solvers use the name in the channel's index, and installers use the name in the package. If the names "
        "differ, updates, pins and removals do not find the package.",
        fix="rename the file to NAME-VERSION-BUILD.conda, using the values in `info/index.json`",
        check=partial(_found, kinds=("name",)),
        cases=lambda: (
            Case(title="a different version in the metadata", facts=_sample(version="1.1"), fires=True),
            Case(title="the same version", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/path-unsafe",
        severity="error",
        title="A path is outside the prefix",
        why="Installing the package could create or replace any of the user's files. Absolute paths, `..` and "
        "paths below one of the package's symbolic links all make this possible.",
        fix="do not install it; download it again from its original source",
        check=partial(_found, kinds=("unsafe",)),
        cases=lambda: (
            Case(title="`../x`", facts=_sample((_member("../x"),), (_line("../x"),)), fires=True),
            Case(title="a file below the prefix", facts=_sample((_member("bin/x"),), (_line("bin/x"),)), fires=False),
        ),
    ),
    Rule(
        id="conda/link",
        severity="error",
        title="A link leaves the package's prefix or points to a missing file",
        why=(
            "An absolute symbolic link, or one that leaves the prefix, points to a different file on each machine "
            "or to no file at all; a hard link to a missing file cannot be unpacked."
        ),
        fix="use relative links to files in the prefix",
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
        why=(
            "Which of the two files is installed depends on the installer, and the recorded hash matches at most "
            "one of them."
        ),
        fix="add each file to the package only once",
        check=partial(_found, kinds=("twice",)),
        cases=lambda: (
            Case(
                title="two entries for one path",
                facts=_sample((_member("bin/x"),), (_line("bin/x"),) * 2),
                fires=True,
            ),
            Case(title="one entry for each path", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/case-collision",
        severity="warning",
        title="Paths differ only in case",
        why="macOS and Windows silently keep only one of the files.",
        fix="rename one of the files",
        check=partial(_found, kinds=("case",)),
        cases=lambda: (
            Case(
                title="`Lib/x` and `lib/x` on Windows",
                facts=_sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x")), index=_WINDOWS),
                fires=True,
            ),
            Case(
                title="the same paths on Linux, where case matters",
                facts=_sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x"))),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="conda/file-missing",
        severity="error",
        title="A file listed in `paths.json` is not in the archive",
        why="Installers link the listed files and stop halfway if one is missing.",
        fix="rebuild the package",
        check=partial(_found, kinds=("missing",)),
        cases=lambda: (
            Case(title="a file that is only listed", facts=_sample((), (_line("bin/x"),)), fires=True),
            Case(title="a file that is listed and in the archive", facts=_sample(), fires=False),
        ),
    ),
    Rule(
        id="conda/file-unlisted",
        severity="warning",
        title="A file in the archive is missing from a file list",
        why=(
            "Installers use `paths.json`, and older ones use `info/files`. A file in only one of the lists is "
            "installed for some users only, and is left behind on removal."
        ),
        fix="rebuild the package so that both lists match its content",
        check=partial(_found, kinds=("extra", "files")),
        cases=lambda: (
            Case(title="a file missing from `paths.json`", facts=_sample((_member("bin/x"),)), fires=True),
            Case(title="a file missing from `info/files`", facts=_sample(files=()), fires=True),
            Case(title="a file in both lists", facts=_sample(files=(f"{_SITE}/demo.py",)), fires=False),
        ),
    ),
    Rule(
        id="conda/content-differs",
        severity="error",
        title="A file does not match its entry in `paths.json`",
        why="The size, hash or kind differs: either the archive was changed after it was built, or the build tool "
        "recorded incorrect values. Installers that verify files reject it.",
        fix="do not install it; download it again from its original source, or rebuild it",
        check=partial(_found, kinds=("size", "hash", "type")),
        cases=lambda: (
            Case(
                title="a different hash",
                facts=_sample((_member("bin/x", sha256="0" * 64),), (_line("bin/x"),)),
                fires=True,
            ),
            Case(title="a different size", facts=_sample((_member("bin/x", size=7),), (_line("bin/x"),)), fires=True),
            Case(
                title="a file that matches its entry",
                facts=_sample((_member("bin/x"),), (_line("bin/x"),)),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="conda/prefix",
        severity="error",
        title="The build prefix is not replaced, or is replaced incorrectly",
        why=(
            "A file that contains its build prefix looks for its data in a folder that exists only on the build "
            "machine. Replacing the prefix in a binary as if it were text changes the binary's length and breaks "
            "it."
        ),
        fix=(
            "rebuild the package with a tool that detects prefixes in text files and binaries, or make the file "
            "relocatable"
        ),
        check=partial(_found, kinds=("prefix",)),
        cases=lambda: (
            Case(
                title="a binary that contains the prefix but is listed as text",
                facts=_sample(
                    (_member("bin/x", prefix="binary"),),
                    (_line("bin/x", prefix_placeholder=_PREFIX, file_mode="text"),),
                ),
                fires=True,
            ),
            Case(
                title="a text file that contains the prefix and is listed as text",
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
        title="A compiled Python file is for a different Python version, or should not be in the package",
        why="Python ignores .pyc files compiled for a different version, and packages for different Python versions "
        "conflict when they contain the same .pyc file. With `noarch: python`, the installer compiles the files.",
        fix="compile the files with the Python version that the package is for, in a clean build folder",
        check=partial(_found, kinds=("pyc",)),
        cases=lambda: (
            Case(
                title="a Python 3.14 file in a Python 3.11 package",
                facts=_sample(
                    (_member(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                    (_line(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                ),
                fires=True,
            ),
            Case(
                title="a Python 3.11 file in a Python 3.11 package",
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
