"""Resolves an environment's requirements with uv and turns the answer into a lock.

Two rounds. The first asks only what the user has configured, and takes the best version of all places, as pip does.
Where that has no answer, the second adds the indexes that a GPU backend names, below all others: each package still
comes from the user's own places if they have a fitting version.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import msgspec
from packaging import tags
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import BuildTag, parse_wheel_filename

from axletree.core.errors import AxletreeError, HostError, Problem, RecipeError
from axletree.host.fetch import ONLINE, measure, size_of
from axletree.host.indexes import file_url, local_path, redact, uv_program
from axletree.host.run import finish
from axletree.recipe.locks import LockedWheel, PyLock, make_lock, render_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from axletree.core.records import Interpreter
    from axletree.host.indexes import IndexSettings

    _Measure = Callable[[str], tuple[str, int]]

_KEPT_VARIABLES = re.compile(
    r"^UV_(CACHE_DIR|SYSTEM_CERTS|NATIVE_TLS|HTTP_\w+|KEYRING_PROVIDER|EXCLUDE_NEWER|OFFLINE)$"
)
"""uv's variables that a resolution sees; where to look is said on its command line."""
_LEAD = re.compile(r"^[^\w`(]*(?:(?:error|warning|cause|hint|help):[^\w`(]*)*")
"""What uv puts in front of a line: its kind, and the strokes that tie lines together."""
_NO_ANSWER = re.compile(
    r"failed to fetch|error sending request|dns error|connection|timed out|status code", re.IGNORECASE
)
_NO_NETWORK = re.compile(r"network (?:was|is|connectivity is) disabled", re.IGNORECASE)
_NOT_THERE = re.compile(r"no versions? of|not found|available|no wheels?", re.IGNORECASE)


class _OfflineError(HostError):
    """Something is in no cache, and the network must not be asked."""


class _Wheel(msgspec.Struct):
    hashes: dict[str, str] = {}
    url: str | None = None
    path: str | None = None
    size: int | None = None


class _Package(msgspec.Struct):
    name: str
    version: str | None = None
    wheels: list[_Wheel] = []


class _Resolution(msgspec.Struct):
    packages: list[_Package] = []


def resolve_environment(
    requires: Sequence[str],
    interpreter: Interpreter,
    settings: IndexSettings,
    *,
    python: str,
    environ: Mapping[str, str],
    extra_indexes: Sequence[str] = (),
    excludes: Sequence[str] = (),
    previous: PyLock | None = None,
    keep: Path,
    offline: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> PyLock:
    """Exactly one wheel for each package that the requirements need, as a lock.

    Args:
        requires: requirements (PEP 508).
        interpreter: what the wheels must run on.
        settings: the user's own places.
        python: the interpreter as the recipe names it, ``3.11`` or ``3.13t``.
        environ: proxies, certificates and uv's cache settings count.
        extra_indexes: asked only for what the user's own places do not have.
        excludes: distributions that are there already, so that nothing may bring them.
        previous: a lock whose versions are kept wherever they still fit.
        keep: folder for wheels that had to be downloaded, because their index does not describe them.
        offline: take what the places of this machine and uv's cache have, and ask no network.
        note: told of such downloads.

    Raises:
        RecipeError: the requirements cannot be met together, or only by something else than wheels.
        HostError: an index gives no answer, or offline and something is in no cache.
    """
    _check_requirements(requires)
    with tempfile.TemporaryDirectory(prefix="axletree-lock-") as folder:
        output = Path(folder) / "pylock.lock.toml"

        def attempt(places: list[str]) -> str:
            # uv reads the versions to keep from the file that it is about to write.
            output.unlink(missing_ok=True)
            if previous is not None:
                output.write_text(render_lock(previous), encoding="utf-8")
            options = [*places, *(["--offline"] if offline else [])]
            if excludes:
                without = Path(folder) / "excludes.txt"
                without.write_text("".join(f"{name}\n" for name in excludes), encoding="utf-8")
                options.append(f"--excludes={without}")
            return _compile(requires, interpreter, options, output=output, environ=environ)

        text = _first_answer(attempt, settings, extra_indexes)
        read = partial(measure, keep=keep, note=note, offline=offline)
        wheels = _read_wheels(text, interpreter, base=file_url(output), read=read, offline=offline)
    return make_lock(requires, python=python, platform=interpreter.platform, wheels=wheels)


def wheel_tags(interpreter: Interpreter) -> list[tags.Tag]:
    """Tags of the wheels that an interpreter of this machine takes, the best first (PEP 425)."""
    major, minor = (int(part) for part in interpreter.version.split(".")[:2])
    abi = f"cp{major}{minor}{'t' if interpreter.free_threaded else ''}"
    platforms = list(tags.platform_tags())
    found = list(tags.cpython_tags((major, minor), [abi], platforms))
    return [*found, *tags.compatible_tags((major, minor), f"cp{major}{minor}", platforms)]


def _first_answer(attempt: Callable[[list[str]], str], settings: IndexSettings, extra_indexes: Sequence[str]) -> str:
    own = [url for url in (settings.index_url, *settings.extra_index_urls) if url]
    links = [f"--find-links={link}" for link in settings.find_links]
    try:
        return attempt([*links, *_best_of(own)])
    except (RecipeError, _OfflineError) as error:
        # Who wants no index at all gets none.
        further = [url for url in extra_indexes if url not in own] if own else []
        if not further or not _NOT_THERE.search(str(error)):
            raise
        try:
            return attempt([*links, *_in_order([*own, *further])])
        except AxletreeError as second:
            names = ", ".join(redact(url) for url in further)
            problems = [*error.problems, *(_also(problem, names) for problem in second.problems)]
            raise type(error)(*problems) from second


def _also(problem: Problem, names: str) -> Problem:
    return msgspec.structs.replace(
        problem, message=f"a second search, which included {names}, also failed: {problem.message}", hint=None
    )


def _best_of(indexes: list[str]) -> list[str]:
    """Options for one index as good as the other: the best version of all wins."""
    if not indexes:
        return ["--no-index"]
    first, *rest = indexes
    return [f"--default-index={first}", *(f"--index={url}" for url in rest), "--index-strategy=unsafe-best-match"]


def _in_order(indexes: list[str]) -> list[str]:
    """Options for indexes in order: a later one only for what no earlier one has a fitting version of."""
    *ahead, last = indexes
    return [*(f"--index={url}" for url in ahead), f"--default-index={last}", "--index-strategy=unsafe-first-match"]


def _compile(
    requires: Sequence[str], interpreter: Interpreter, places: list[str], *, output: Path, environ: Mapping[str, str]
) -> str:
    command = [uv_program(), "pip", "compile", "-", "--format=pylock.toml", f"--output-file={output}", "--no-config"]
    command += ["--quiet", "--no-header", "--only-binary=:all:", f"--python={interpreter.path}", *places]
    variables = {name: value for name, value in environ.items() if _is_passed(name)}
    certificates = environ.get("PIP_CERT")
    if certificates:
        variables.setdefault("SSL_CERT_FILE", certificates)
    wanted = "".join(f"{requirement}\n" for requirement in requires)
    done = finish(command, text=wanted, cwd=output.parent, environ=variables | {"NO_COLOR": "1"})
    if done.code != 0:
        raise _failure(done.err.decode(errors="replace"))
    return output.read_text(encoding="utf-8")


def _is_passed(name: str) -> bool:
    return not name.startswith(("UV_", "PIP_", "VIRTUAL_ENV")) or _KEPT_VARIABLES.match(name) is not None


def _failure(stderr: str) -> AxletreeError:
    """One error of what uv printed: its causes, without its decoration."""
    lines = [_LEAD.sub("", line.strip()) for line in stderr.splitlines()]
    lines = [line for line in lines if line]
    text = "\n    ".join(lines) or "uv gave no reason"
    if _NO_NETWORK.search(text):
        causes = "\n    ".join(line for line in lines if not _NO_NETWORK.search(line))
        return _OfflineError(f"the requirements cannot be resolved with --offline: {causes}", hint=ONLINE)
    if _NO_ANSWER.search(text):
        asked = next((line for line in lines if "fetch" in line), lines[0])
        reason = f"{asked}: {lines[-1]}" if asked != lines[-1] else asked
        hint = (
            "try again when the index is reachable, set AXLETREE_INDEX_URL to a mirror, or set "
            "AXLETREE_FIND_LINKS to a folder with the packages"
        )
        return HostError(f"a package index did not respond: {reason}", hint=hint)
    hint = (
        "change the requirements, or add a folder or an index that provides the missing packages "
        "(--find-links, --index-url)"
    )
    return RecipeError(f"the requirements cannot be satisfied: {text}", hint=hint)


def _check_requirements(requires: Sequence[str]) -> None:
    problems = []
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            reason = str(error).splitlines()[0]
            problems.append(f"not a valid requirement (PEP 508): {text!r}: {reason}")
            continue
        if requirement.url is not None:
            problems.append(f"a requirement with a URL cannot be locked: {text}")
    if problems:
        raise RecipeError(
            *problems,
            hint=(
                "write a requirement such as `numpy>=2`; if the wheel is not on an index, put it into a folder and "
                "pass that with --find-links"
            ),
        )


def _read_wheels(text: str, interpreter: Interpreter, *, base: str, read: _Measure, offline: bool) -> list[LockedWheel]:
    """The best wheel of each package in uv's answer."""
    resolution = msgspec.convert(tomllib.loads(text), _Resolution)
    ranks = {tag: rank for rank, tag in enumerate(wheel_tags(interpreter))}
    found: list[LockedWheel] = []
    missing: list[str] = []
    for package in resolution.packages:
        ranked = [
            (rank, filename, wheel)
            for wheel in package.wheels
            if (filename := _filename(wheel)) and (rank := _rank(filename, ranks)) is not None
        ]
        if not ranked or package.version is None:
            missing.append(
                f"no wheel for {package.name} {package.version or ''} is compatible with {interpreter.soabi}"
            )
            continue
        best = max(rank for rank, _, _ in ranked)
        _, filename, wheel = min((entry for entry in ranked if entry[0] == best), key=lambda entry: entry[1])
        sha256, size = _described(wheel, base=base, read=read, offline=offline)
        found.append(
            LockedWheel(
                name=package.name,
                version=package.version,
                filename=filename,
                size=size,
                sha256=sha256,
                url=_public_address(wheel),
            )
        )
    if missing:
        raise RecipeError(
            *missing,
            hint=(
                "only wheels can be locked: build one (pip wheel NAME), put it into a folder, and pass that with "
                "--find-links"
            ),
        )
    return found


def _filename(wheel: _Wheel) -> str:
    return unquote(urlsplit(wheel.url).path).rpartition("/")[2] if wheel.url else (wheel.path or "").rpartition("/")[2]


def _public_address(wheel: _Wheel) -> str | None:
    """Where an index has a wheel, for anybody who may read it: no credentials, none where a query may be one."""
    parts = urlsplit(wheel.url or "")
    if parts.scheme not in {"http", "https"} or parts.query:
        return None
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment=""))


def _rank(filename: str, ranks: Mapping[tags.Tag, int]) -> tuple[int, BuildTag] | None:
    """How good a wheel is, the highest is the best: by its tags, then by its build; ``None`` where it does not run."""
    try:
        _, _, build, offered = parse_wheel_filename(filename)
    except ValueError:
        return None
    rank = min((ranks[tag] for tag in offered if tag in ranks), default=None)
    return None if rank is None else (-rank, build)


def _described(wheel: _Wheel, *, base: str, read: _Measure, offline: bool) -> tuple[str, int]:
    """Digest and size; where an index gives no size, its server may, and else the file itself does."""
    url = urljoin(base, wheel.url or wheel.path or "")
    sha256 = wheel.hashes.get("sha256")
    size = wheel.size
    if size is None and sha256 and not (offline and local_path(url) is None):
        size = size_of(url)
    return (sha256, size) if sha256 and size is not None else read(url)
