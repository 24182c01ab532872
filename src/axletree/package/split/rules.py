"""Rules that split a wheel into several distributions: the file as it is written, read with all its errors at once.

A rules file is TOML. Its rules are tried in order and the first that takes a file decides where it goes, so a file can
have one place only; a file that no rule takes is an error when a wheel is split.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta
from packaging.utils import canonicalize_name

from axletree.core.errors import RecipeError
from axletree.core.globs import glob_fault
from axletree.core.trees import is_safe_path
from axletree.recipe.base import Table
from axletree.recipe.faults import Fault, glob_faults, suggestion
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.recipe.faults import Path

Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
        extra={"expects": "a normalized name: lowercase letters, digits and '-', with a letter or digit at both ends"},
    ),
]
Label = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9]*(\.(0|[1-9][0-9]*|[a-z][a-z0-9]*))*$",
        extra={
            "expects": "a local version label such as split.1: parts separated by '.', numbers without leading zeros"
        },
    ),
]
Globs = tuple[str, ...]
_TAKES = re.compile(r"[a-z0-9*?-]+(\[[a-z0-9-]+(,[a-z0-9-]+)*\])?")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class OutputPackage(Table, frozen=True, kw_only=True):
    """A distribution to create. One of them has the name of the original wheel and keeps its metadata."""

    name: Name
    summary: str = ""
    """One line; the original's own for the package that keeps its metadata."""
    requires: tuple[Name, ...] = ()
    """Other packages of the file, pinned exactly. Those that get no file, and so are not made, are left out."""
    takes: tuple[str, ...] = ()
    """Requirements of the original that go here, by glob, with or without extras: ``nvidia-*``,
    ``cuda-toolkit[cudart,cupti]``. Several packages may take the same. What nobody takes stays with the original."""
    independent: bool = False
    """Of the Python version: tagged ``py3-none``."""
    meta: bool = False
    """Holds no files and requires all others."""


class FileRule(Table, frozen=True, kw_only=True):
    """Assigns the files that match to one package, or drops them."""

    to: str | None = None
    """The package."""
    drop: str | None = None
    """Why its files go nowhere. Either this or ``to``."""
    files: Globs = ()
    """Patterns of paths (:mod:`axletree.core.globs`)."""
    modules: tuple[str, ...] = ()
    """Python packages and modules: ``torch.distributed``."""
    soname: Globs = ()
    """Globs of the SONAMEs of shared libraries. Costs inflating them."""
    exclude: Globs = ()
    """Patterns of what it does not take."""
    place: dict[str, str] = {}
    """Folder in the original -> folder in the package."""
    when: str | None = None
    """Pattern: the rule counts only where the wheel has such a file."""
    relocate: bool = False
    """Whether the search path of its ELF files is extended to the folders of what they need."""
    required: bool = False
    """Whether it is an error if it takes no file."""


class SplitEdit(Table, frozen=True, kw_only=True):
    """A text replacement in a file, such as a path that has changed."""

    file: str
    """Path in the original."""
    find: str
    replace: str
    count: Annotated[int, Meta(ge=1)] = 1
    """How often the text must be there. Another number is an error: the file is not what the rule was made for."""
    when: str | None = None
    """Pattern: the edit is made only where the wheel has such a file."""


class Check(Table, frozen=True, kw_only=True):
    """Check at import that all packages are installed and come from the same split."""

    file: str
    """Python file that begins with the check, ``torch/__init__.py``."""
    markers: str
    """Folder for the files by which packages are known, ``libtorch/parts``."""


Opens = dict[str, tuple[str, ...]]
"""SONAME, file name or path in the original of a file -> names of the libraries that it opens at run time."""


class SplitRules(Table, frozen=True, kw_only=True):
    """A rules file."""

    name: Name
    """The distribution that it splits."""
    label: Label
    """What the local version label of the packages ends with. Raise its number when the rules change."""
    version_module: str | None = None
    """Python file whose ``__version__`` tells the local label where the metadata has none, ``torch/version.py``."""
    package: Annotated[tuple[OutputPackage, ...], Meta(min_length=1)]
    rule: Annotated[tuple[FileRule, ...], Meta(min_length=1)]
    edit: tuple[SplitEdit, ...] = ()
    opens: Opens = {}
    """What files open with ``dlopen``, which their NEEDED does not tell. The search path of a file that is relocated
    leads there too, and the split is refused where a file does not reach what it opens. Counts only where both are in
    packages of the split: one list serves the wheels of all platforms."""
    check: Check | None = None

    @property
    def main(self) -> OutputPackage:
        """The package that keeps the original's name and metadata."""
        return next(package for package in self.package if package.name == self.name)


def parse_split_rules(text: str, *, filename: str) -> SplitRules:
    """Read a rules file.

    Raises:
        RecipeError: with everything that is wrong with it, each with its line.
    """
    data = decode_toml(text, filename)
    faults, repaired = check_structure(data, SplitRules)
    rules = msgspec.convert(repaired, SplitRules)
    if not faults:  # what would be said of stand-ins is of no use
        faults = [*_package_faults(rules), *_rule_faults(rules), *_edit_faults(rules), *_opens_faults(rules)]
    if faults:
        raise RecipeError(*locate_faults(faults, text, filename))
    return rules


def module_globs(module: str) -> Globs:
    """Globs of the files of a Python package or module, given by its dotted name."""
    path = module.replace(".", "/")
    return (f"{path}/**", f"{path}.py", f"{path}.pyi", f"{path}.*.so", f"{path}.so")


def _package_faults(rules: SplitRules) -> Iterator[Fault]:
    names = [package.name for package in rules.package]
    if rules.name not in names:
        hint = f"add a [[package]] with name = {rules.name!r}: this package keeps the metadata"
        yield Fault(path=("name",), message=f"no package is called {rules.name!r}", hint=hint)
    for number, package in enumerate(rules.package):
        path: Path = ("package", number)
        if canonicalize_name(package.name) != package.name:
            hint = f"use {canonicalize_name(package.name)!r}"
            yield Fault(path=(*path, "name"), message=f"{package.name!r} is not a normalized name", hint=hint)
        if package.name in names[:number]:
            yield Fault(path=(*path, "name"), message=f"two packages are called {package.name!r}")
        if package.name == rules.name and (package.meta or package.independent):
            message = "this package keeps the files and tags of the original wheel, so it cannot be meta or independent"
            yield Fault(path=path, message=message)
        if package.meta and (package.requires or package.takes):
            yield Fault(
                path=path,
                message="a meta package always requires all other packages, so it cannot set `requires` or `takes`",
            )
        for place, name in enumerate(package.requires):
            if name == package.name:
                yield Fault(path=(*path, "requires", place), message="the package requires itself")
            else:
                yield from _known(name, names, (*path, "requires", place))
        for place, text in enumerate(package.takes):
            if not _TAKES.fullmatch(text):
                message = f"{text!r} is not a valid requirement pattern"
                yield Fault(path=(*path, "takes", place), message=message, hint="write NAME, NAME-* or NAME[extra,...]")


def _rule_faults(rules: SplitRules) -> Iterator[Fault]:
    names = [package.name for package in rules.package if not package.meta]
    for number, rule in enumerate(rules.rule):
        path: Path = ("rule", number)
        if (rule.to is None) == (rule.drop is None):
            yield Fault(
                path=path, message="the rule needs either `to` or `drop`", hint='set to = "PACKAGE" or drop = "REASON"'
            )
        if rule.to is not None:
            yield from _known(rule.to, names, (*path, "to"))
        if not (rule.files or rule.modules or rule.soname):
            yield Fault(
                path=path,
                message="the rule does not specify which files to take",
                hint="specify files, modules or soname",
            )
        for place, module in enumerate(rule.modules):
            if not _MODULE.fullmatch(module):
                yield Fault(path=(*path, "modules", place), message=f"{module!r} is not a valid Python module name")
        yield from glob_faults(rule.files, (*path, "files"))
        yield from glob_faults(rule.exclude, (*path, "exclude"))
        yield from _when_faults(rule, path)
        for folder, target in rule.place.items():
            if not (is_safe_path(folder) and is_safe_path(target)):
                hint = 'write both folders without leading or trailing slashes: "torch/lib" = "libtorch/lib"'
                yield Fault(
                    path=(*path, "place", folder),
                    message=f"{folder!r} and {target!r} must be relative folders",
                    hint=hint,
                )


def _when_faults(table: FileRule | SplitEdit, path: Path) -> Iterator[Fault]:
    fault = None if table.when is None else glob_fault(table.when)
    if fault is not None:
        yield Fault(path=(*path, "when"), message=f"{table.when!r} {fault}")


def _edit_faults(rules: SplitRules) -> Iterator[Fault]:
    for number, edit in enumerate(rules.edit):
        yield from _when_faults(edit, ("edit", number))
        if not edit.find:
            yield Fault(path=("edit", number, "find"), message="the text to find is empty")
        if not is_safe_path(edit.file):
            yield Fault(path=("edit", number, "file"), message=f"{edit.file!r} is not a relative path")
    if rules.check is not None:
        for key, value in (("file", rules.check.file), ("markers", rules.check.markers)):
            if not is_safe_path(value):
                yield Fault(path=("check", key), message=f"{value!r} is not a relative path")


def _opens_faults(rules: SplitRules) -> Iterator[Fault]:
    for user, names in rules.opens.items():
        if not is_safe_path(user):
            yield Fault(path=("opens", user), message="the key is neither a file name nor a relative path")
        for place, name in enumerate(names):
            if not name or "/" in name:
                hint = "write the name passed to dlopen; a library opened by path needs no search path"
                yield Fault(
                    path=("opens", user, place),
                    message=f"{name!r} is not a library name (expected one such as libfoo.so.1)",
                    hint=hint,
                )


def _known(name: str, names: Iterable[str], path: Path) -> Iterator[Fault]:
    if name not in names:
        hint = suggestion(name, names, "packages of this file")
        yield Fault(path=path, message=f"{name!r} is not a package that can contain files", hint=hint)
