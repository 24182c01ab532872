"""Rules about conda packages: whether what a package says of itself is what it holds."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, listing, silent
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
        more = f"; {others} more file{'s have' if others > 1 else ' has'} a similar problem" if others else ""
        lines = listing([f"{issue.path}: {issue.detail}" if issue.path else issue.detail for issue in issues])
        yield Found(first.path or first.package, f"{first.detail}{more}", evidence=lines)


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
            fires("no `info/paths.json`", _sample(paths=None)),
            fires("an `index.json` that is not valid JSON", _sample(unreadable=("info/index.json: not valid JSON",))),
            silent("both files present", _sample()),
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
            fires("a different version in the metadata", _sample(version="1.1")),
            silent("the same version", _sample()),
        ),
    ),
    Rule(
        id="conda/path-unsafe",
        severity="error",
        title="A path is outside the prefix",
        why="Installing the package could create or replace any of the user's files. Absolute paths, `..` and "
        "paths below one of the package's symbolic links all make this possible.",
        fix="do not install the package; download it again from its original source",
        check=partial(_found, kinds=("unsafe",)),
        cases=lambda: (
            fires("`../x`", _sample((_member("../x"),), (_line("../x"),))),
            silent("a file below the prefix", _sample((_member("bin/x"),), (_line("bin/x"),))),
        ),
    ),
    Rule(
        id="conda/link",
        severity="error",
        title="A link leaves the package's prefix or points to a missing file",
        why="An absolute symbolic link, or one that leaves the prefix, points to a different file on each machine "
        "or to no file at all; a hard link to a missing file cannot be unpacked.",
        fix="use relative links to files in the prefix",
        check=partial(_found, kinds=("link",)),
        cases=lambda: (
            fires(
                "an absolute link",
                _sample(
                    (_member("lib/x", kind="link", target="/usr/lib/x", sha256=""),),
                    (_line("lib/x", path_type="softlink", sha256=None, size_in_bytes=None),),
                ),
            ),
            silent(
                "a relative link",
                _sample(
                    (_member("lib/x", kind="link", target="x.1", sha256=""),),
                    (_line("lib/x", path_type="softlink", sha256=None, size_in_bytes=None),),
                ),
            ),
        ),
    ),
    Rule(
        id="conda/path-twice",
        severity="error",
        title="The package contains a path twice",
        why="Which of the two files is installed depends on the installer, and the recorded hash matches at most "
        "one of them.",
        fix="add each file to the package only once",
        check=partial(_found, kinds=("twice",)),
        cases=lambda: (
            fires("two entries for one path", _sample((_member("bin/x"),), (_line("bin/x"),) * 2)),
            silent("one entry for each path", _sample()),
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
            fires(
                "`Lib/x` and `lib/x` on Windows",
                _sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x")), index=_WINDOWS),
            ),
            silent(
                "the same paths on Linux, where case matters",
                _sample((_member("Lib/x"), _member("lib/x")), (_line("Lib/x"), _line("lib/x"))),
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
            fires("a listed file that is not in the archive", _sample((), (_line("bin/x"),))),
            silent("a file that is listed and in the archive", _sample()),
        ),
    ),
    Rule(
        id="conda/file-unlisted",
        severity="warning",
        title="A file in the archive is missing from a file list",
        why="Installers use `paths.json`, and older ones use `info/files`. A file in only one of the lists is "
        "installed for some users only, and is left behind on removal.",
        fix="rebuild the package, so that info/files and info/paths.json list exactly the files in it",
        check=partial(_found, kinds=("extra", "files")),
        cases=lambda: (
            fires("a file missing from `paths.json`", _sample((_member("bin/x"),))),
            fires("a file missing from `info/files`", _sample(files=())),
            silent("a file in both lists", _sample(files=(f"{_SITE}/demo.py",))),
        ),
    ),
    Rule(
        id="conda/content-differs",
        severity="error",
        title="A file does not match its entry in `paths.json`",
        why="The size, hash or kind differs: either the archive was changed after it was built, or the build tool "
        "recorded incorrect values. Installers that verify files reject it.",
        fix="do not install the package; download it again from its original source, or rebuild it",
        check=partial(_found, kinds=("size", "hash", "type")),
        cases=lambda: (
            fires("a different hash", _sample((_member("bin/x", sha256="0" * 64),), (_line("bin/x"),))),
            fires("a different size", _sample((_member("bin/x", size=7),), (_line("bin/x"),))),
            silent("a file that matches its entry", _sample((_member("bin/x"),), (_line("bin/x"),))),
        ),
    ),
    Rule(
        id="conda/prefix",
        severity="error",
        title="The build prefix is not replaced, or is replaced incorrectly",
        why="A file that contains its build prefix looks for its data in a folder that exists only on the build "
        "machine. Replacing the prefix in a binary as if it were text changes the binary's length and breaks "
        "it.",
        fix=(
            "rebuild the package with rattler-build or conda-build, which detect prefixes, or remove the "
            "absolute path from the file"
        ),
        check=partial(_found, kinds=("prefix",)),
        cases=lambda: (
            fires(
                "a binary that contains the prefix but is listed as text",
                _sample(
                    (_member("bin/x", prefix="binary"),),
                    (_line("bin/x", prefix_placeholder=_PREFIX, file_mode="text"),),
                ),
            ),
            silent(
                "a text file that contains the prefix and is listed as text",
                _sample(
                    (_member("bin/x", prefix="text"),), (_line("bin/x", prefix_placeholder=_PREFIX, file_mode="text"),)
                ),
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
            fires(
                "a Python 3.14 file in a Python 3.11 package",
                _sample(
                    (_member(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                    (_line(f"{_SITE}/__pycache__/demo.cpython-314.pyc"),),
                ),
            ),
            silent(
                "a Python 3.11 file in a Python 3.11 package",
                _sample(
                    (_member(f"{_SITE}/__pycache__/demo.cpython-311.pyc"),),
                    (_line(f"{_SITE}/__pycache__/demo.cpython-311.pyc"),),
                ),
            ),
        ),
    ),
)
"""Every rule over :class:`CheckedConda`."""
