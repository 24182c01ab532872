"""Versions of an SDK's packages, and whether pip takes for newer what is newer.

The forms are TheRock's (``docs/packaging/versioning.md``, ``build_tools/compute_rocm_package_version.py``). At one base
pip has them in order: dev < nightly < prerelease < release; dpkg has dev builds behind nightlies. For rpm a number is
newer than a word, so there dated builds come behind prereleases. Two builds of kind ``dev`` have no order between them,
as nobody can tell which of two commits is later.

A framework that was built against an SDK says so in its local version label, ``2.9.0+rocm7.10.0``. There lies a trap:
PEP 440 compares what stands between dots as text unless it is a number, so ``rocm10`` is older than ``rocm7``.
"""

from __future__ import annotations

import datetime as dt
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from packaging.version import Version

from axletree.core.errors import Problem, UsageError
from axletree.package.wheel.metadata import parse_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ReleaseType = Literal["release", "prerelease", "nightly", "nightly-bkc", "dev", "ci"]
Form = Literal["wheel", "deb", "rpm"]
FORMS: tuple[Form, ...] = ("wheel", "deb", "rpm")

_BASE = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){1,3}")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_COUNT = re.compile(r"[1-9]\d*|0")
_SUFFIX = re.compile(r"[A-Za-z0-9.+~_-]+")
_LABEL = re.compile(r"(?P<dev>dev)?(?P<name>[a-z]+)(?P<dot>\.?)(?P<version>\d.*)")
_SHORT = 8


class OrderFault(NamedTuple):
    """Two versions that pip orders incorrectly or treats as equal."""

    older: str
    newer: str
    why: str


def compute_version(
    base: str,
    release_type: ReleaseType,
    form: Form = "wheel",
    *,
    date: str = "",
    git_sha: str = "",
    prerelease: str = "",
    base_date: str = "",
) -> str:
    """The version of a package.

    Args:
        base: ``7.10.0``.
        release_type: what it is built for; ``ci`` is as ``dev``.
        form: of which kind of package.
        date: ``YYYYMMDD``; of nightlies, and of dev builds as ``deb`` and ``rpm``.
        git_sha: commit, 7 to 64 digits; of dev builds.
        prerelease: number of the prerelease.
        base_date: of ``nightly-bkc`` (best known configuration): the nightly that it is based on.

    Raises:
        UsageError: something that the form needs is missing, is not in its form, or has no meaning there.
    """
    problems = list(_faults(base, release_type, date=date, git_sha=git_sha, prerelease=prerelease, base_date=base_date))
    if problems:
        raise UsageError(*problems)
    return base + _suffix(release_type, form, date, git_sha, prerelease, base_date)


def with_suffix(base: str, suffix: str) -> str:
    """A base with a suffix of one's own, ``7.10.0`` and ``.dev0``: the same for each kind of package.

    Raises:
        UsageError: the base is none, or the two are no version for a wheel.
    """
    problems = list(_base_fault(base))
    made = base + suffix
    version = parse_version(made) if _SUFFIX.fullmatch(suffix) else None
    if not problems and (version is None or version.release != Version(base).release):
        message = f"{suffix!r} is not a valid suffix for version {base}"
        hint = "use a PEP 440 suffix, such as .dev0, a20261128, rc1, .post1 or +label"
        problems = [Problem(key="--custom-version-suffix", message=message, hint=hint)]
    if problems:
        raise UsageError(*problems)
    return made


def framework_version(public: str, sdk_version: str, *, name: str = "rocm", numeric: bool = False) -> str:
    """The version of a framework that was built against an SDK, ``2.9.0+rocm7.10.0``.

    Builds against a dev version are older than all others: their label is ``devrocm...``.

    Args:
        public: its own version.
        sdk_version: of the SDK's wheels. A label has no ``+``, a ``.`` stands for it.
        name: of the SDK.
        numeric: with a dot behind the name, ``+rocm.10.1.0``. Only so are versions with a number of two digits newer
            than those with one; but it is older than any label without the dot, so it is for those who begin with it.

    Raises:
        UsageError: one of the two is no version.
    """
    faults = [
        Problem(message=f"{text!r} is not a valid version (PEP 440)")
        for text in (public, sdk_version)
        if parse_version(text) is None
    ]
    if faults or Version(public).local:
        raise UsageError(*(faults or [Problem(message=f"{public!r} already has a local version label")]))
    sdk = Version(sdk_version)
    word = f"dev{name}" if sdk.is_devrelease else name
    label = str(sdk).replace("+", ".").replace("!", ".")
    return str(Version(f"{public}+{word}{'.' if numeric else ''}{label}"))


def order_faults(versions: Iterable[str]) -> Iterator[OrderFault]:
    """Versions of one distribution that pip would take in another order than they were meant in.

    Those of one public version are compared by what their local labels say of the SDK: name and version of it, dev
    builds first. What is no version, has no label, or one that names no SDK, is not compared.
    """
    groups: dict[tuple[str, str], list[tuple[bool, Version, str]]] = {}
    for text in dict.fromkeys(versions):
        version = parse_version(text)
        found = _LABEL.fullmatch(version.local or "") if version is not None else None
        if version is None or found is None or (sdk := _sdk_of(found["version"])) is None:
            continue
        groups.setdefault((version.public, found["name"]), []).append((found["dev"] is None, sdk, text))
    for (_, name), group in groups.items():
        group.sort(key=lambda item: item[:2])
        for older, newer in pairwise(group):
            if older[:2] == newer[:2] or Version(older[2]) < Version(newer[2]):
                continue
            yield OrderFault(older=older[2], newer=newer[2], why=_why(name, older, newer))


def _why(name: str, older: tuple[bool, Version, str], newer: tuple[bool, Version, str]) -> str:
    one, other = (item[2].partition("+")[2] for item in (older, newer))
    if one.startswith(f"{name}.") != other.startswith(f"{name}."):
        return f"a label with a dot after {name} sorts before any label without one"
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if left != right:
            return f"{right!r} and {left!r} are compared as strings (PEP 440, local version identifiers)"
    return "the labels are compared part by part (PEP 440, local version identifiers)"


def _sdk_of(text: str) -> Version | None:
    """The version in a label; a dev version's commit is behind a dot there."""
    head, mark, _ = text.partition(".dev0.")
    return parse_version(f"{head}.dev0" if mark else text)


def _suffix(kind: ReleaseType, form: Form, date: str, git_sha: str, prerelease: str, base_date: str) -> str:
    match kind, form:
        case "release", _:
            return ""
        case "prerelease", "wheel":
            return f"rc{prerelease}"
        case "prerelease", _:
            return f"~{'pre' if form == 'deb' else 'rc'}{prerelease}"
        case "nightly", _:
            return f"{'a' if form == 'wheel' else '~'}{date}"
        case "nightly-bkc", _:
            return f"{'a' if form == 'wheel' else '~'}{base_date}+bkc.{date}"
        case _, "wheel":
            # All digits would be a number, and lose zeros at its front.
            return f".dev0+{'g' if git_sha.isdecimal() else ''}{git_sha}"
        case _, "deb":
            return f"~dev{date}"
        case _:
            return f"~{date}g{git_sha[:_SHORT]}"


def _faults(base: str, kind: ReleaseType, **given: str) -> Iterator[Problem]:
    yield from _base_fault(base)
    needed = {
        "release": (),
        "prerelease": ("prerelease",),
        "nightly": ("date",),
        "nightly-bkc": ("date", "base_date"),
        "dev": ("date", "git_sha"),
        "ci": ("date", "git_sha"),
    }[kind]
    checks = {
        "date": (_is_date, "--date", "a date in the form YYYYMMDD"),
        "base_date": (_is_date, "--base-date", "a date in the form YYYYMMDD"),
        "git_sha": (lambda text: bool(_SHA.fullmatch(text)), "--git-sha", "a commit hash (7 to 64 hexadecimal digits)"),
        "prerelease": (lambda text: bool(_COUNT.fullmatch(text)), "--prerelease-version", "a number"),
    }
    for name, (check, option, what) in checks.items():
        value = given[name]
        if name in needed and not value:
            yield Problem(key=option, message=f"the option is required for a {kind} version", hint=f"specify {what}")
        elif value and not check(value):
            yield Problem(key=option, message=f"{value!r} is not valid: expected {what}")
        elif value and name in {"prerelease", "base_date"} and name not in needed:
            yield Problem(key=option, message=f"the option does not apply to a {kind} version")
    if kind == "nightly-bkc" and given["base_date"] > given["date"] > "":
        base, date = given["base_date"], given["date"]
        yield Problem(key="--base-date", message=f"the base date {base} is later than the date {date}")


def _base_fault(base: str) -> Iterator[Problem]:
    if not _BASE.fullmatch(base):
        yield Problem(
            key="--base",
            message=f"{base!r} is not a valid base version",
            hint="use dot-separated numbers, such as 7.10.0",
        )


def _is_date(text: str) -> bool:
    try:
        return len(text) == 8 and text.isascii() and bool(dt.datetime.strptime(text, "%Y%m%d"))  # noqa: DTZ007
    except ValueError:
        return False
