"""The table ``conda`` of a package, and what it comes to at a variant: name, build string, build number.

Build strings are known before anything is built, from the variant alone: siblings can then pin each other exactly, and
a plan can say what it will make.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import msgspec
from msgspec import Meta
from packaging.version import Version

from axletree.recipe.base import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

Layout = Literal["auto", "python", "prefix"]

_SUM = re.compile(r"\s*\d{1,9}(?:\s*\+\s*\d{1,9})*\s*")
_UNFIT = re.compile(r"[^A-Za-z0-9_.+]+")
_NO_TOKEN = frozenset({"python", "platform"})
"""Axes that a build string tells in another way: the Python by ``py311``, the platform by the subfolder."""


class CondaRunExports(Table, frozen=True, kw_only=True):
    """Dependencies for packages that are built against this one."""

    weak: Annotated[
        tuple[str, ...],
        Meta(description="Dependencies for packages that list this package in their host requirements."),
    ] = ()
    strong: Annotated[
        tuple[str, ...],
        Meta(description="Dependencies also for packages that list this package in their build requirements."),
    ] = ()


class CondaTable(Table, frozen=True, kw_only=True):
    """Settings of the conda package. Its texts may also use ``{pin}``: ``>=2.6.0,<2.7.0a0`` for version 2.6.0."""

    name: Annotated[
        str | None, Meta(description="Package name; by default, the distribution's usual name on conda.")
    ] = None
    build: Annotated[
        str | None,
        Meta(
            description="Build string, such as `{gpu}_{blas}_py{python.nodot}_{hash}_{number}`. `{hash}` is `h` and seven digits that identify the variant, `{number}` the build number. By default: axis values, Python, hash, number."
        ),
    ] = None
    build_number: Annotated[
        Annotated[int, Meta(ge=0)] | str,
        Meta(
            description='Build number: higher ones are preferred. May be a sum of placeholders, such as "2 + {gpu.number}".'
        ),
    ] = 0
    depends: Annotated[
        tuple[str, ...],
        Meta(
            description="Dependencies in addition to those derived from `requires`, Python and the platform; an entry here replaces all others for the same package."
        ),
    ] = ()
    constrains: Annotated[
        tuple[str, ...], Meta(description="Version constraints on packages that are not dependencies.")
    ] = ()
    run_exports: Annotated[
        CondaRunExports, Meta(description="Dependencies to add to packages that are built against this one.")
    ] = CondaRunExports()
    ignore_run_exports: Annotated[
        tuple[str, ...],
        Meta(
            description="Packages whose run exports, from the conda environments of the stage, do not become dependencies. Names of the dependencies that are left out work too."
        ),
    ] = ()
    track_features: Annotated[
        tuple[str, ...], Meta(description="Features to track; solvers prefer packages that track none.")
    ] = ()
    activate: Annotated[
        dict[str, str],
        Meta(
            description="Variables that activating an environment with the package sets, unless they are set already; deactivating it unsets them."
        ),
    ] = {}
    layout: Annotated[
        Layout,
        Meta(
            description="`python`: files go into site-packages; `prefix`: files go into the root of the environment (lib, include, share). `auto`: `python` for trees with Python metadata and packages that use axis `python`."
        ),
    ] = "auto"
    prefix: Annotated[
        str | None,
        Meta(description="Folder to put the files in; by default, the package's own `prefix` in layout `python`."),
    ] = None


class TargetConda(msgspec.Struct, frozen=True, kw_only=True):
    """A package's conda form at a variant."""

    name: str | None
    """``None``: what conda calls the distribution, which is read from a table."""
    version: str
    build: str
    build_number: int
    variant: dict[str, str]
    """What the hash in the build string stands for."""
    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    weak: tuple[str, ...]
    strong: tuple[str, ...]
    track_features: tuple[str, ...]
    activate: dict[str, str] = {}
    layout: Layout
    prefix: str | None


class Fill(Protocol):
    """Fills the placeholders of a text."""

    def __call__(self, text: str, given: Mapping[str, str], /) -> str:
        """The text with the axes' values, and those ``given`` beside them."""


def resolve_conda(
    table: CondaTable,
    fill: Fill,
    *,
    version: str,
    axes: Mapping[str, str],
    tokens: tuple[str, ...],
) -> TargetConda:
    """A package's conda form.

    Args:
        table: as the recipe has it.
        fill: fills texts at the variant.
        version: of the package (PEP 440), without local label: build strings tell variants apart.
        axes: values of the axes that the package sees.
        tokens: see :func:`build_tokens`.

    Raises:
        RecipeError: a text reads what its owner does not declare.
    """
    pin = {"pin": minor_pin(version)}
    number = table.build_number if isinstance(table.build_number, int) else add_up(fill(table.build_number, {}))
    given = {"hash": build_hash(axes), "number": str(number)}
    build = "_".join([*tokens, given["hash"], str(number)]) if table.build is None else fill(table.build, given)

    def each(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(fill(text, pin) for text in texts)

    return TargetConda(
        name=None if table.name is None else fill(table.name, {}),
        version=version.lower().replace("-", "_"),
        build=build,
        build_number=number,
        variant=dict(axes),
        depends=each(table.depends),
        constrains=each(table.constrains),
        weak=each(table.run_exports.weak),
        strong=each(table.run_exports.strong),
        track_features=each(table.track_features),
        activate={name: fill(text, {}) for name, text in table.activate.items()},
        layout=table.layout,
        prefix=None if table.prefix is None else fill(table.prefix, {}),
    )


def build_tokens(ids: Mapping[str, str]) -> tuple[str, ...]:
    """What a build string says of a variant by default, the Python last: ``cpu``, ``mkl``, ``py311``.

    Args:
        ids: axis -> its part of the variant's id, in the order of the recipe.
    """
    parts = [_UNFIT.sub("_", text) for axis, text in ids.items() if axis not in _NO_TOKEN]
    return tuple(filter(None, [*parts, ids.get("python", "")]))


def build_hash(variant: Mapping[str, str]) -> str:
    """``h`` and seven digits that stand for a variant: SHA-1 over conda-build's JSON of it.

    The digits equal conda-build's for the same ``hash_input.json``, so the bytes that are hashed are those of
    Python's ``json.dumps`` with sorted keys.
    """
    text = json.dumps(dict(variant), sort_keys=True)
    return "h" + hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:7]


def add_up(text: str) -> int:
    """The value of a sum of whole numbers, ``200 + 100 + 2``.

    Raises:
        ValueError: it is none.
    """
    if _SUM.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a valid build number: use a whole number, or whole numbers joined with '+'")
    return sum(map(int, text.split("+")))


def minor_pin(version: str) -> str:
    """This version or a later one of the same minor version: ``>=2.6.0,<2.7.0a0`` (conda-build's ``max_pin="x.x"``)."""
    found = Version(version)
    epoch = f"{found.epoch}!" if found.epoch else ""
    return f">={found.public},<{epoch}{found.major}.{found.minor + 1}.0a0"


def changed(table: CondaTable, change: CondaTable) -> CondaTable:
    """A table with an override's: lists and variables are added, what else it gives replaces what was there."""
    fields = {name: getattr(change, name) for name in CondaTable.__struct_fields__}
    given = {name: value for name, value in fields.items() if value != getattr(CondaTable(), name)}
    for name in ("depends", "constrains", "ignore_run_exports", "track_features"):
        given[name] = (*getattr(table, name), *fields[name])
    given["activate"] = {**table.activate, **change.activate}
    given["run_exports"] = CondaRunExports(
        weak=(*table.run_exports.weak, *change.run_exports.weak),
        strong=(*table.run_exports.strong, *change.run_exports.strong),
    )
    return msgspec.structs.replace(table, **given)
