"""A distribution's files as a conda package: where each goes, which are made anew, what it depends on."""

from __future__ import annotations

import configparser
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError, Problem
from axletree.package.conda.info import render_script
from axletree.package.conda.model import PLACEHOLDER, CondaAbout, CondaFile, CondaPackage, Late, RunExports
from axletree.package.conda.names import python_tag
from axletree.package.conda.requires import CondaTarget, Names, convert_requires, platform_depends, python_depends
from axletree.package.conda.writer import content_chunks
from axletree.package.wheel.info import WheelInfo, render_wheel_info
from axletree.package.wheel.metadata import Metadata, render_metadata
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.record import RecordEntry, encode_hash, render_record
from axletree.recipe.conda import build_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.package.wheel.writer import Member

_MADE_ANEW = frozenset(
    {"METADATA", "WHEEL", "RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json"}
    | {"uv_cache.json"}
)
_LICENSE = re.compile(r"(?:licenses/.+|(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*)", re.IGNORECASE)
_URLS = {
    "home": ("homepage", "home"),
    "dev_url": ("source", "repository", "sourcecode", "github"),
    "doc_url": ("documentation", "docs"),
}


class _Layout(NamedTuple):
    """Where a package has its files."""

    site_packages: str
    scripts: str
    include: str | None
    """``None`` where it depends on the Python, which is not known."""
    python: str
    """What scripts are started by: ``3.11``, or ``3``."""


def conda_package_from_dist(
    members: Sequence[Member],
    metadata: Metadata,
    wheel_info: WheelInfo,
    *,
    subdir: str,
    python: str | None = None,
    name: str | None = None,
    build: str | None = None,
    build_number: int = 0,
    variant: Mapping[str, str] | None = None,
    names: Names | None = None,
    depends: Iterable[str] = (),
    constrains: Iterable[str] = (),
    run_exports: RunExports | None = None,
) -> tuple[CondaPackage, tuple[CondaFile, ...]]:
    """Lay out the members of a wheel as a conda package; ``host.conda.write_conda_file`` writes it.

    Entry points become scripts, or a list for installers. ``__pycache__`` is left out: see ``host.conda_pyc``.

    Args:
        members: as ``write_wheel`` takes them; METADATA, WHEEL and RECORD are made anew.
        metadata: gives name, version and requirements.
        wheel_info: its tags say what Python and system the files are for.
        subdir: ``linux-64`` ..., or ``noarch``.
        python: ``3.11`` or ``3.13t``; ``None``: any, in the layout of ``noarch: python`` (with a platform: CEP 20).
        name: of the package, where it is not the distribution's.
        build: else ``py311h1234567_0`` from Python, hash of the variant and number.
        build_number: higher ones are preferred.
        variant: what the hash stands for.
        names: distribution -> conda packages, see :data:`~axletree.package.conda.requires.Names`.
        depends: more dependencies; one on a package that the metadata requires as well takes its place.
        constrains: more constraints, likewise.
        run_exports: what dependents get.

    Raises:
        IntegrityError: tags that do not fit, requirements that conda can't have, members without a place. Lists all.
    """
    target = CondaTarget(subdir=subdir, python=python)
    problems: list[Problem] = []
    files, points, folder = _lay_out(members, metadata, wheel_info, target, problems)
    needed, optional = _requirements(metadata, wheel_info, target, names, problems)
    variant = dict(variant or {})
    package = CondaPackage(
        name=name or canonicalize_name(metadata.name),
        version=metadata.version.lower().replace("-", "_"),
        build=build or _build(python, variant, build_number),
        build_number=build_number,
        subdir=subdir,
        noarch="python" if python is None else None,
        depends=merged(needed, depends),
        constrains=merged(optional, constrains),
        about=describe(metadata),
        run_exports=run_exports,
        hash_input=variant,
        entry_points=points if python is None else (),
        placeholder=PLACEHOLDER,
        info=tuple(_licenses(members, folder)),
    )
    return package, files


def _build(python: str | None, variant: Mapping[str, str], number: int) -> str:
    """A build string as conda-build makes it."""
    return f"{python_tag(python) if python else 'py'}{build_hash(variant)}_{number}"


def _lay_out(
    members: Sequence[Member], metadata: Metadata, wheel_info: WheelInfo, target: CondaTarget, problems: list[Problem]
) -> tuple[tuple[CondaFile, ...], tuple[str, ...], str]:
    """All files, the entry points, and the wheel's metadata folder."""
    problems += _platform_problems(wheel_info, target)
    layout = _layout(target, problems)
    folder = _dist_info(members, metadata)
    points = _entry_points(members, folder, problems)
    files = [*_placed(members, folder, layout, metadata, problems), *_made(folder, metadata, wheel_info, layout)]
    if target.python is not None:
        files += [_script(point, target.python) for point in points]
    files.append(_record(files, f"{layout.site_packages}/{folder}/RECORD", layout))
    return tuple(files), tuple(points), folder


def _requirements(
    metadata: Metadata, wheel_info: WheelInfo, target: CondaTarget, names: Names | None, problems: list[Problem]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the wheel needs, and what it only holds to a version; raises its problems with those found before."""
    try:
        required = convert_requires(metadata, target, names)
        system = platform_depends(_platforms(wheel_info), target.subdir) if target.subdir != "noarch" else ()
    except IntegrityError as error:
        raise IntegrityError(*problems, *error.problems) from error
    if problems:
        raise IntegrityError(*problems)
    return (*python_depends(metadata, target), *required.depends, *system), required.constrains


def describe(metadata: Metadata) -> CondaAbout:
    """What METADATA tells people, as ``about.json`` has it."""
    urls = {"homepage": metadata.get("Home-page") or "", "documentation": metadata.get("Docs-Url") or ""}
    for line in metadata.get_all("Project-URL"):
        label, _, url = line.partition(",")
        urls[re.sub(r"[^a-z]", "", label.lower())] = url.strip()
    found = {field: next((urls[label] for label in labels if urls.get(label)), None) for field, labels in _URLS.items()}
    license_name = metadata.get("License-Expression") or metadata.get("License") or ""
    short = license_name if "\n" not in license_name and len(license_name) <= 100 else ""
    return CondaAbout(summary=metadata.get("Summary"), license=short or None, **found)


def _layout(target: CondaTarget, problems: list[Problem]) -> _Layout:
    if target.subdir.startswith("win-"):
        message = (
            "Windows packages are not supported: they have a different layout, with executables instead of scripts"
        )
        problems.append(Problem(key=target.subdir, message=message))
    if target.python is None:
        return _Layout("site-packages", "python-scripts", None, "3")
    version = target.python.removesuffix("t")
    return _Layout(f"lib/python{target.python}/site-packages", "bin", f"include/python{target.python}", version)


def _platforms(info: WheelInfo) -> list[str]:
    return [tag.platform for text in info.tags for tag in parse_tag(text)]


def _platform_problems(info: WheelInfo, target: CondaTarget) -> list[Problem]:
    """Whether tags fit the Python, and ``noarch`` has no machine code."""
    problems: list[Problem] = []
    if target.subdir == "noarch" and any(platform != "any" for platform in _platforms(info)):
        message = f"a wheel with tag {info.tags[0]} contains machine code and cannot become a noarch package"
        problems.append(Problem(key="subdir", message=message))
    interpreters = {(tag.interpreter, tag.abi) for text in info.tags for tag in parse_tag(text)}
    if not any(_runs(interpreter, abi, target.python) for interpreter, abi in interpreters):
        wanted = f"Python {target.python}" if target.python else "all Python versions"
        problems.append(
            Problem(key="python", message=f"a wheel with tag {', '.join(info.tags[:3])} does not support {wanted}")
        )
    return problems


def _runs(interpreter: str, abi: str, python: str | None) -> bool:
    """Whether code of a tag runs on a Python; ``None`` asks for every one from some version on."""
    found = re.fullmatch(r"(py|cp)(\d)(\d*)", interpreter)
    if found is None or found[2] != "3":
        return False
    if python is None:
        return (found[1] == "py" and abi == "none") or abi == "abi3"
    version = python.removesuffix("t").replace(".", "")
    if found[1] == "cp" and abi != "abi3":
        return abi in {f"cp{version}{'t' if python.endswith('t') else ''}", "none"} and found[2] + found[3] == version
    return int(found[3] or 0) <= int(version[1:]) and not (abi == "abi3" and python.endswith("t"))


def _dist_info(members: Iterable[Member], metadata: Metadata) -> str:
    """The wheel's metadata folder, whatever it is called there."""
    folders = {top for member in members if (top := member.path.partition("/")[0]).endswith(".dist-info")}
    expected = dist_info_folder(metadata.name, metadata.version)
    return folders.pop() if len(folders) == 1 else expected


def _placed(
    members: Iterable[Member], folder: str, layout: _Layout, metadata: Metadata, problems: list[Problem]
) -> Iterable[CondaFile]:
    """The members at their places in the prefix."""
    for member in members:
        top, _, rest = member.path.partition("/")
        if (top == folder and rest in _MADE_ANEW) or "__pycache__" in member.path.split("/"):
            continue
        if not top.endswith(".data") or not rest:
            yield _file(member, f"{layout.site_packages}/{member.path}")
            continue
        scheme, _, rest = rest.partition("/")
        roots = {"purelib": layout.site_packages, "platlib": layout.site_packages, "data": ""}
        if scheme == "scripts":
            yield _shebang(member, f"{layout.scripts}/{rest}", layout)
        elif scheme == "headers" and layout.include:
            yield _file(member, f"{layout.include}/{metadata.name}/{rest}")
        elif scheme in roots:
            yield _file(member, f"{roots[scheme]}/{rest}".removeprefix("/"))
        else:
            message = (
                "the file cannot be in a package for all Python versions"
                if scheme == "headers"
                else "this folder is not a valid wheel install scheme"
            )
            problems.append(Problem(key=member.path, message=message))


def _file(member: Member, path: str) -> CondaFile:
    return CondaFile(path=path, data=member.data, size=member.size, executable=member.executable)


def _shebang(member: Member, path: str, layout: _Layout) -> CondaFile:
    """A script; ``#!python`` becomes the prefix's Python, as PEP 427 asks of installers."""
    data = b"".join(content_chunks(_file(member, path)))
    if re.match(rb"#!pythonw?\b", data):
        first, _, rest = data.partition(b"\n")
        options = first.partition(b" ")[2].strip()
        line = f"#!{PLACEHOLDER}/bin/python{layout.python}".encode() + (b" " + options if options else b"")
        data = line + b"\n" + rest
    return CondaFile(path=path, data=data, executable=True)


def _script(point: str, python: str) -> CondaFile:
    name = point.partition("=")[0].strip()
    return CondaFile(path=f"bin/{name}", data=render_script(point, python=python.removesuffix("t")), executable=True)


def _made(folder: str, metadata: Metadata, info: WheelInfo, layout: _Layout) -> list[CondaFile]:
    texts = {
        "INSTALLER": b"conda\n",
        "METADATA": render_metadata(metadata),
        "WHEEL": render_wheel_info(info),
    }
    return [CondaFile(path=f"{layout.site_packages}/{folder}/{name}", data=data) for name, data in texts.items()]


def _record(files: Sequence[CondaFile], path: str, layout: _Layout) -> CondaFile:
    """RECORD with paths from site-packages; where the prefix is put in, no hash would hold."""
    up = "../../../"
    rows: list[tuple[str, str, int | None]] = []
    for file in files:
        if file.path.startswith(f"{layout.site_packages}/"):
            shown = file.path.removeprefix(f"{layout.site_packages}/")
        elif file.path.startswith(f"{layout.scripts}/"):
            shown = f"{up}bin/{file.path.removeprefix(f'{layout.scripts}/')}"
        else:
            shown = up + file.path
        changes = isinstance(file.data, bytes) and PLACEHOLDER.encode() in file.data
        rows.append((shown, "" if changes else file.path, _size(file)))
    rows.sort()

    def render(digests: Mapping[str, str]) -> bytes:
        lines = [
            RecordEntry(path=shown, hash=encode_hash(bytes.fromhex(digests.get(key, "00" * 32))), size=size)
            if key
            else RecordEntry(path=shown)
            for shown, key, size in rows
        ]
        return render_record([*lines, RecordEntry(path=path.removeprefix(f"{layout.site_packages}/"))])

    return CondaFile(path=path, data=Late(render=render))


def _size(file: CondaFile) -> int | None:
    if isinstance(file.data, bytes):
        return len(file.data)
    return file.size if file.size is not None else getattr(file.data, "size", None)


def _entry_points(members: Iterable[Member], folder: str, problems: list[Problem]) -> list[str]:
    """``name = module:function`` of all scripts, sorted."""
    found = next((member for member in members if member.path == f"{folder}/entry_points.txt"), None)
    if found is None:
        return []
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # names of scripts have case
    try:
        parser.read_string(b"".join(content_chunks(_file(found, found.path))).decode())
    except (configparser.Error, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        problems.append(Problem(key=found.path, message=f"the file cannot be read: {reason}"))
        return []
    points: list[str] = []
    for group in ("console_scripts", "gui_scripts"):
        for name, value in parser.items(group) if parser.has_section(group) else ():
            shown = value.partition("[")[0].strip()
            if re.fullmatch(r"[\w.]+\s*:\s*[\w.]+", shown) is None or "/" in name:
                problems.append(
                    Problem(key=found.path, message=f"{name} = {value[:80]!r} is not a valid script entry point")
                )
                continue
            function = re.sub(r"\s", "", shown)
            points.append(f"{name.strip()} = {function}")
    return sorted(set(points))


def _licenses(members: Iterable[Member], folder: str) -> Iterable[CondaFile]:
    for member in members:
        rest = member.path.removeprefix(f"{folder}/")
        if rest != member.path and _LICENSE.fullmatch(rest):
            file = _file(member, f"licenses/{rest.removeprefix('licenses/')}")
            yield msgspec.structs.replace(file, executable=False)


def merged(own: Iterable[str], more: Iterable[str]) -> tuple[str, ...]:
    """Dependencies sorted by name; a given one takes the place of all others on the same package."""
    given = tuple(dict.fromkeys(more))
    replaced = {spec.partition(" ")[0] for spec in given}
    kept = [spec for spec in own if spec.partition(" ")[0] not in replaced]
    return tuple(sorted(dict.fromkeys([*kept, *given])))
