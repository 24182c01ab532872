"""Tests of how packages are installed: side by side, of one version, complete."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from typing import TYPE_CHECKING

from ._libraries import same_version
from ._sources import pip_command
from ._testing import PASSED, Case, failed, skipped, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._installed import Dist, Row
    from ._sdk import SdkPackage
    from ._testing import Bench, Outcome

_PIECE = 1 << 20


def install_cases(bench: Bench) -> Iterator[Case]:
    """Tests of each distribution."""
    sdk = bench.sdk
    for dist in (sdk.file.dist, *(package.dist for package in bench.present)):
        yield Case("install", dist, "siblings", partial(_siblings, bench, dist))
        yield Case("install", dist, "version", partial(_version, bench, dist))
        yield Case("install", dist, "files", partial(_files, bench, dist))
        yield Case("install", dist, "content", partial(_content, bench, dist))


def _package(bench: Bench, dist: str) -> SdkPackage | None:
    return next((each for each in bench.sdk.file.packages if each.dist == dist), None)


def _siblings(bench: Bench, dist: str) -> Outcome:
    """All platform folders lie in one site directory: search paths and links lead from one into another."""
    sdk, site = bench.sdk, bench.sdk.site.resolve()
    package = _package(bench, dist)
    folders = [sdk.home] if package is None else [bench.installed.get(package) or sdk.devel_module()]
    places = [folder for folder in folders if folder is not None]
    places += [each.info for each in bench.dists.get(dist, [])]
    apart = [f"{place} is not in {site}" for place in places if place.resolve().parent != site]
    links = [f"{place} is a link" for place in places if place.is_symlink()]
    return some(apart + links, "install all packages of the SDK into one site directory, as pip and uv do")


def _version(bench: Bench, dist: str) -> Outcome:
    """One version for all, and once."""
    sdk, package = bench.sdk, _package(bench, dist)
    wanted, found = sdk.file.version, bench.dists.get(dist, [])
    if len(found) > 1:
        versions = " and ".join(sorted(each.version for each in found))
        return failed(
            f"{dist} is installed in several versions: {versions}",
            f"repeat pip uninstall {dist} until no version is left, then install it again",
        )
    shipped = sdk.shipped(package).version if package else wanted
    told = {shipped, *(each.version for each in found)}
    other = sorted(version for version in told if not same_version(version, wanted))
    if other:
        text = f"{dist} has version {', '.join(other)}, but {sdk.file.dist} has version {wanted}"
        return failed(text, pip_command(sdk, f"'{dist}=={wanted}'"))
    return PASSED


def _files(bench: Bench, dist: str) -> Outcome:
    """Every file of RECORD is there in its size."""
    rows = _rows(bench, dist)
    if not rows:
        return skipped(f"{dist} has no RECORD because its installer does not record the installed files")
    problems = [problem for found, row in rows if (problem := _size_problem(found, row))]
    return some(problems, bench.again(dist))


def _size_problem(found: Dist, row: Row) -> str:
    try:
        size = (found.site / row.path).stat().st_size
    except OSError as error:
        return f"{row.path}: {error.strerror}"
    return f"{row.path} has a size of {size} bytes instead of {row.size}" if row.size not in (None, size) else ""


def _content(bench: Bench, dist: str) -> Outcome:
    """Every file of RECORD has the content that was built."""
    checked, problems = 0, []
    for found, row in _rows(bench, dist):
        name, _, wanted = row.hash.partition("=")
        path = found.site / row.path
        if name not in hashlib.algorithms_guaranteed or not path.is_file():
            continue  # what is missing is told by another test
        checked += 1
        digest = hashlib.new(name, usedforsecurity=False)
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        if base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() != wanted.rstrip("="):
            problems.append(f"{row.path} was modified")
    if not checked:
        return skipped(f"{dist} has no RECORD with hashes")
    return some(problems, bench.again(dist))


def _rows(bench: Bench, dist: str) -> list[tuple[Dist, Row]]:
    """Lines of RECORD, without files that Python writes, and without the devel tree, which has tests of its own."""
    devel = bench.sdk.devel_package()
    tree = devel.folder if devel else ""
    return [
        (found, row)
        for found in bench.dists.get(dist, [])[:1]
        for row in found.record
        if not row.path.endswith(".pyc") and not (tree and row.path.partition("/")[0] in (tree, f"{tree}.tmp"))
    ]
