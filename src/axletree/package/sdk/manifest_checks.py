"""What a manifest means: everything that is wrong with one whose structure is right."""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from axletree.core.trees import is_safe_path
from axletree.package.sdk.cmake_checks import cmake_faults
from axletree.package.sdk.target_checks import target_faults
from axletree.package.wheel.metadata import parse_version
from axletree.recipe.faults import Fault, glob_faults, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.package.sdk.manifest import Claim, Manifest, Package, Places
    from axletree.recipe.faults import Path

_MODULE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_COMMAND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_PREFIX = re.compile(r"[A-Z][A-Z0-9_]*[A-Z0-9]")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_ARTIFACT = re.compile(r"[A-Za-z0-9.+*?-]+")
_SEARCHED = frozenset({"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME"})
"""Variables that replacing breaks other programs with."""


def manifest_faults(manifest: Manifest) -> list[Fault]:
    """All faults of a manifest's meaning."""
    checks = (
        _about,
        _packages,
        _templates,
        _requirements,
        _claims,
        _libraries,
        _commands,
        _environment,
        target_faults,
        _debs,
    )
    return [fault for check in checks for fault in check(manifest)]


def _about(manifest: Manifest) -> Iterator[Fault]:
    sdk = manifest.sdk
    if canonicalize_name(sdk.name) != sdk.name:
        yield Fault(
            path=("sdk", "name"),
            message=f"{sdk.name!r} is not a normalized name",
            hint=f"use {canonicalize_name(sdk.name)!r}",
        )
    if not _MODULE.fullmatch(sdk.module):
        hint = "start with a letter, and use only letters, digits and '_'"
        yield Fault(path=("sdk", "module"), message=f"{sdk.module!r} is not a valid module name", hint=hint)
    elif sdk.module in sys.stdlib_module_names:
        yield Fault(path=("sdk", "module"), message=f"{sdk.module!r} is already a module of the standard library")
    if not _COMMAND.fullmatch(sdk.command):
        yield Fault(path=("sdk", "command"), message=f"{sdk.command!r} is not a valid program name")
    if not _PREFIX.fullmatch(sdk.prefix):
        hint = "use capital letters, digits and '_', with no trailing '_'; for example, ROCM_SDK"
        yield Fault(path=("sdk", "prefix"), message=f"{sdk.prefix!r} is not a valid variable prefix", hint=hint)
    if sdk.version is not None and parse_version(sdk.version) is None:
        yield Fault(path=("sdk", "version"), message=f"{sdk.version!r} is not a valid version (PEP 440)")
    if sdk.license:
        try:
            canonicalize_license_expression(sdk.license)
        except InvalidLicenseExpression:
            hint = "use identifiers from spdx.org/licenses, joined by AND and OR; LicenseRef-NAME for others"
            yield Fault(path=("sdk", "license"), message=f"{sdk.license!r} is not a valid SPDX expression", hint=hint)
    yield from (
        Fault(
            path=("sdk", "urls", label), message=f"{url!r} is not a URL", hint="use a URL such as https://example.org"
        )
        for label, url in sdk.urls.items()
        if not re.fullmatch(r"https?://[^\s,]+", url)
    )
    yield from _places(sdk.bin, ("sdk", "bin"))
    yield from _places(sdk.cmake, ("sdk", "cmake"))
    if sdk.cmake_compiler:
        yield from _places(sdk.cmake_compiler, ("sdk", "cmake-compiler"))
    yield from cmake_faults(sdk)
    yield from _one_line(sdk.summary, ("sdk", "summary"))
    known = {package.name: package for package in manifest.package if package.kind != "devel"}
    needs: tuple[Path, ...] = tuple(
        ("package", number, key) for number in range(len(manifest.package)) for key in ("name", "kind", "extra")
    )
    root = known.get(sdk.root_package)
    path: Path = ("sdk", "root-package")
    if root is None:
        near = suggestion(sdk.root_package, known, "packages of this manifest")
        message = f"package {sdk.root_package!r} does not exist, so it cannot be the root"
        yield Fault(path=path, message=message, hint=near, needs=needs)
    elif root.extra:
        message = f"{root.name!r} is installed only with extra {root.extra!r}, so the root may be missing"
        yield Fault(path=path, message=message)


def _packages(manifest: Manifest) -> Iterator[Fault]:
    names: dict[str, int] = {}
    dists = {manifest.sdk.name: "the selector"}
    modules = {manifest.sdk.module: "the selector"}
    devel: str | None = None
    for number, package in enumerate(manifest.package):
        path: Path = ("package", number)
        if package.name in names:
            yield Fault(path=(*path, "name"), message=f"two packages are called {package.name!r}")
        names.setdefault(package.name, number)
        if canonicalize_name(package.dist) != package.dist:
            message = f"{package.dist!r} is not a normalized name"
            yield Fault(path=(*path, "dist"), message=message, hint=f"use {canonicalize_name(package.dist)!r}")
        elif package.dist in dists:
            message = f"{package.dist!r} is also the distribution name of {dists[package.dist]}"
            yield Fault(path=(*path, "dist"), message=message)
        else:
            module = package.dist.replace("-", "_")
            if module in modules:
                message = f"module {module!r} is also the module of {modules[module]}"
                yield Fault(path=(*path, "dist"), message=message, hint="rename sdk.module or dist")
            elif module in sys.stdlib_module_names or not _MODULE.fullmatch(module):
                yield Fault(path=(*path, "dist"), message=f"{module!r} cannot be used as a module name")
            modules.setdefault(module, f"package {package.name!r}")
        dists.setdefault(package.dist, f"package {package.name!r}")
        if package.kind == "devel":
            if devel is not None:
                message = f"{devel!r} is already a devel package, and there can be only one"
                yield Fault(path=(*path, "kind"), message=message)
            devel = devel or package.name
        yield from _one_line(package.summary, (*path, "summary"))
        yield from _extra(package, manifest.package, path)


def _extra(package: Package, packages: Sequence[Package], path: Path) -> Iterator[Fault]:
    extra = package.extra
    if not extra:
        return
    if not _NAME.fullmatch(extra) or canonicalize_name(extra) != extra:
        hint = "use lowercase letters, digits and '-', with a letter or digit at both ends"
        yield Fault(path=(*path, "extra"), message=f"{extra!r} is not a normalized extra name", hint=hint)
    for other in packages:
        made = ("device-", f"{other.extra or other.name}-")
        if other.kind == "libraries" and other is not package and extra.startswith(made):
            message = f"extras of this form are generated for the GPU code of {other.name!r}"
            yield Fault(path=(*path, "extra"), message=message)


def _templates(manifest: Manifest) -> Iterator[Fault]:
    taken = {package.dist for package in manifest.package} | {manifest.sdk.name}
    filled: set[str] = set()
    for number, package in enumerate(manifest.package):
        for key, place, text in (("family", "{family}", package.family), ("device", "{target}", package.device)):
            path: Path = ("package", number, key)
            if not text:
                continue
            if package.kind != "libraries":
                yield Fault(path=path, message="only a package of kind 'libraries' can have GPU packages")
                continue
            made = text.replace(place, "gfx90a")
            if text.count(place) != 1 or not _NAME.fullmatch(made) or canonicalize_name(made) != made:
                hint = f"use a distribution name that contains {place}: {package.dist}-{place}"
                yield Fault(
                    path=path, message=f"{text!r} does not give each {key} its own distribution name", hint=hint
                )
            elif made in filled | taken:
                yield Fault(
                    path=path, message=f"another package already uses the name {text!r}", hint="choose a different name"
                )
            filled.add(made)


def _requirements(manifest: Manifest) -> Iterator[Fault]:
    packages = {package.name: package for package in manifest.package}
    names: tuple[Path, ...] = tuple(("package", number, "name") for number in range(len(manifest.package)))
    for number, package in enumerate(manifest.package):
        for place, name in enumerate(package.requires):
            path: Path = ("package", number, "requires", place)
            if name == package.name:
                yield Fault(path=path, message="the package requires itself")
            elif name not in packages:
                hint = suggestion(name, packages, "packages of this manifest")
                yield Fault(path=path, message=f"no package is called {name!r}", hint=hint, needs=names)
            elif packages[name].kind == "devel":
                message = "a package cannot require the devel package, which contains no libraries until it is expanded"
                yield Fault(path=path, message=message)
    for number, package in enumerate(manifest.package):
        circle = _circle(package.name, packages)
        if circle:
            way = " -> ".join(circle)
            yield Fault(path=("package", number, "requires"), message=f"packages require each other in a cycle: {way}")
            return


def _circle(start: str, packages: Mapping[str, Package]) -> list[str]:
    """The way from a package back to itself, over others."""
    stack = [[start]]
    seen: set[str] = set()
    while stack:
        way = stack.pop()
        for name in packages[way[-1]].requires if way[-1] in packages else ():
            if name == start and len(way) > 1:
                return [*way, start]
            if name not in seen and name != start:
                seen.add(name)
                stack.append([*way, name])
    return []


def _claims(manifest: Manifest) -> Iterator[Fault]:
    for number, package in enumerate(manifest.package):
        if not package.claim and package.kind != "devel":
            hint = "add a [[package.claim]] after the package"
            yield Fault(path=("package", number), message=f"package {package.name!r} claims no files", hint=hint)
        for place, claim in enumerate(package.claim):
            yield from _claim(claim, ("package", number, "claim", place))
    for number, drop in enumerate(manifest.drop):
        yield from _claim(drop, ("drop", number))
        if not drop.why.strip():
            yield Fault(
                path=("drop", number, "why"), message="the reason is empty", hint="say why these files are dropped"
            )


def _claim(claim: Claim, path: Path) -> Iterator[Fault]:
    for key, given in (("artifacts", claim.artifacts), ("components", claim.components), ("files", claim.files)):
        if not given:
            message = "the list is empty, so it matches nothing"
            yield Fault(path=(*path, key), message=message, hint="remove the key to use the default")
    for place, name in enumerate(claim.artifacts):
        if not _ARTIFACT.fullmatch(name):
            hint = "use letters, digits, '-', '.', '*' and '?'; artifact names contain no '_'"
            yield Fault(
                path=(*path, "artifacts", place),
                message=f"{name!r} is not a valid pattern for artifact names",
                hint=hint,
            )
    yield from glob_faults(claim.files, (*path, "files"))
    yield from glob_faults(claim.exclude, (*path, "exclude"))
    if "**" in claim.exclude:
        yield Fault(path=(*path, "exclude"), message="the pattern '**' excludes everything")


def _libraries(manifest: Manifest) -> Iterator[Fault]:
    about = manifest.libraries
    for user, names in about.opens.items():
        if not is_safe_path(user):
            message = "the key is neither a SONAME nor the relative path of a file"
            yield Fault(path=("libraries", "opens", user), message=message)
        yield from (
            Fault(
                path=("libraries", "opens", user, place),
                message=f"{name!r} is not a library name (expected one such as libfoo.so.1)",
            )
            for place, name in enumerate(names)
            if not name or "/" in name
        )
    yield from glob_faults(about.dependent, ("libraries", "dependent"))
    for soname, short in about.shortnames.items():
        if not _COMMAND.fullmatch(short) or "/" in soname:
            hint = 'use SONAME = short name: "libfoo.so.1" = "foo"'
            yield Fault(
                path=("libraries", "shortnames", soname),
                message=f"{short!r} is not a valid short name for a library",
                hint=hint,
            )
    yield from glob_faults(manifest.devel.links, ("devel", "links"))
    for pattern, what in manifest.system.items():
        if "/" in pattern or not pattern.strip("*?"):
            message = (
                "the pattern matches every library, so missing ones would count as host libraries"
                if pattern
                else "the pattern is empty"
            )
            message = f"{pattern!r} is not a SONAME" if "/" in pattern else message
            yield Fault(
                path=("system", pattern), message=message, hint='use a glob for SONAMEs: "libz.so.*" = "zlib1g"'
            )
        if not what.strip():
            yield Fault(
                path=("system", pattern), message="the value must name the package that provides these libraries"
            )


def _commands(manifest: Manifest) -> Iterator[Fault]:
    seen: dict[str, int] = {}
    for number, command in enumerate(manifest.command):
        path: Path = ("command", number)
        yield from glob_faults(command.files, (*path, "files"))
        for place, file in enumerate(command.files):
            if file in seen:
                message = f"{file!r} is also in command {seen[file] + 1}, which takes precedence"
                yield Fault(path=(*path, "files", place), message=message)
            seen.setdefault(file, number)
        if command.expect and not command.args:
            message = "this key has no effect: without args, the self tests do not call the program"
            yield Fault(path=(*path, "expect"), message=message)
        if not command.expect_exit:
            yield Fault(path=(*path, "expect-exit"), message="the list is empty, so no exit code would pass the test")
        yield from (
            Fault(path=(*path, "expect-exit", place), message=f"{code} is not a valid exit code")
            for place, code in enumerate(command.expect_exit)
            if code > 255
        )


def _environment(manifest: Manifest) -> Iterator[Fault]:
    for variable, places in manifest.environment.items():
        path: Path = ("environment", variable)
        if not _VARIABLE.fullmatch(variable):
            yield Fault(path=path, message=f"{variable!r} is not a valid environment variable name")
        elif variable in _SEARCHED:
            message = "the variable would overwrite values that users or other tools have set"
            hint = "remove this variable: sdk.bin is prepended to PATH, and libraries are found through RUNPATHs"
            yield Fault(path=path, message=message, hint=hint)
        texts = (places,) if isinstance(places, str) else places
        if any(text.startswith("=") for text in texts):
            if len(texts) > 1:
                yield Fault(path=path, message="a value that starts with '=' must be the only value")
            elif not texts[0].isprintable():
                yield Fault(path=path, message="the value contains characters that are not allowed in a shell command")
        else:
            yield from _places(places, path)


def _debs(manifest: Manifest) -> Iterator[Fault]:
    debs = manifest.debs
    if debs is None:
        return
    if debs.prefix != "." and not is_safe_path(debs.prefix):
        message = f"{debs.prefix!r} is not a relative folder"
        yield Fault(path=("debs", "prefix"), message=message, hint="use a folder such as usr")
    claims = [claim for package in manifest.package for claim in package.claim] + list(manifest.drop)
    before: list[str] = []
    for pattern, artifact in debs.artifacts.items():
        path: Path = ("debs", "artifacts", pattern)
        if not _NAME.fullmatch(artifact):
            yield Fault(
                path=path, message=f"{artifact!r} is not a valid artifact name", hint="use a name such as core-hip"
            )
        elif not any(fnmatchcase(artifact, glob) for claim in claims for glob in claim.artifacts):
            message = f"no claim or drop refers to artifact {artifact!r}"
            known = {glob for claim in claims for glob in claim.artifacts if "*" not in glob}
            yield Fault(path=path, message=message, hint=suggestion(artifact, known, "artifacts of claims"))
        ahead = next((each for each in before if fnmatchcase(pattern, each)), None)
        if ahead is not None:
            message = f"the pattern never applies: {ahead!r} above matches the same names"
            yield Fault(path=path, message=message, hint=f"move it above {ahead!r}")
        before.append(pattern)
    for component, patterns in debs.components.items():
        yield from glob_faults(patterns, ("debs", "components", component))


def _places(places: Places, path: Path) -> Iterator[Fault]:
    texts = (places,) if isinstance(places, str) else places
    if not texts:
        yield Fault(path=path, message="the list is empty, but must contain at least one path")
    for place, text in enumerate(texts):
        if text != "." and not is_safe_path(text):
            at = path if isinstance(places, str) else (*path, place)
            hint = "use a path relative to the prefix, without leading or trailing slashes, or '.'"
            yield Fault(path=at, message=f"{text!r} is not a valid path in the SDK", hint=hint)


def _one_line(text: str, path: Path) -> Iterator[Fault]:
    if "\n" in text or not text.isprintable():
        yield Fault(path=path, message="the text must be a single line")
