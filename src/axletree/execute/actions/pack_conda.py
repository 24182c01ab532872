"""Pack a package's part of a tree into a conda package: as a Python distribution, or at the root of the environment."""

from __future__ import annotations

import os
import posixpath
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name

from axletree.core.errors import StageError
from axletree.execute.context import Outcome
from axletree.execute.packing import (
    as_distribution,
    blob_chunks,
    check_inside,
    content_of,
    elf_facts,
    metadata_of,
    tags_of,
    with_bill,
)
from axletree.execute.search_paths import without_build_paths
from axletree.execute.stage_venvs import interpreter_for
from axletree.host.conda import write_conda_file
from axletree.host.conda_pyc import compile_pyc
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.activation import activation_files
from axletree.package.conda.dist import conda_package_from_dist, merged
from axletree.package.conda.model import CondaFile, CondaPackage, RunExports
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS, runtime_depends
from axletree.package.conda.platforms import conda_subdir
from axletree.package.conda.requires import CONDA_NAMES, conda_name
from axletree.package.conda.tree import conda_package_from_tree
from axletree.package.libraries.build_paths import beside
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.writer import Member
from axletree.plan.actions.pack_conda import CondaParameters, PackedConda
from axletree.recipe.conda_locks import spec_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext
    from axletree.execute.packing import PackageContent
    from axletree.package.wheel.tags import Tags
    from axletree.store.store import Store

_Made = tuple[CondaPackage, tuple[CondaFile, ...], str | None]
"""A package, its files, and the Python that they are for, if they are for one."""


def run(context: ActionContext[CondaParameters]) -> Outcome:
    """Write the package: platform from its machine code, dependencies from the metadata, sources compiled.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says, or can't become such a package.
        StageError: nothing is left for the package, or its layout does not fit the tree.
    """
    wanted = context.parameters.conda
    content = content_of(context, context.parameters.part)
    layout = _is_distribution(content, wanted.layout, context)
    content = without_build_paths(context, content, partial(_moved, context, layout))
    if layout:
        package, files, python = _distribution(context, content)
    else:
        package, files, python = _at_prefix(context, content)
    package = msgspec.structs.replace(
        package, track_features=wanted.track_features, depends=_with_exports(package, context.parameters)
    )
    files = (*files, *activation_files(package.name, wanted.activate), *_compiled(context, package, files, python))
    folder = context.work / "conda"
    written = write_conda_file(
        folder / package.subdir,
        package,
        files,
        epoch=context.ingredients.epoch or 0,
        level=context.parameters.level,
        threads=len(os.sched_getaffinity(0)),
    )
    facts = PackedConda(
        filename=written.path.name,
        subdir=package.subdir,
        size=written.size,
        sha256=written.sha256,
        depends=tuple(package.depends),
        constrains=tuple(package.constrains),
    )
    return Outcome(tree=context.store.ingest(folder, adopt=True), facts=facts)


def _moved(context: ActionContext[CondaParameters], distribution: bool, path: str, entry: str) -> str | None:  # noqa: FBT001
    """What a search path entry becomes that leads to what the package was linked against: conda installs it beside."""
    python, wanted = context.ingredients.axes.get("python"), context.parameters.conda
    if not context.parameters.linked or (distribution and python is None):
        return None
    prefix = context.parameters.package.prefix if distribution and wanted.prefix is None else wanted.prefix
    place = posixpath.join(f"lib/python{python}/site-packages" if distribution else "", prefix or "", path)
    return beside(entry, posixpath.normpath(place))


def _with_exports(package: CondaPackage, parameters: CondaParameters) -> tuple[str, ...]:
    """Dependencies, with those that the environments export; one that the recipe has for the same package counts alone.

    What has no machine code was linked against nothing (conda-build: ``noarch`` packages get no such exports).
    """
    own = {spec_name(text) for text in parameters.conda.depends}
    exported = [text for text in parameters.exported if spec_name(text) not in own]
    return package.depends if package.subdir == "noarch" else tuple(dict.fromkeys([*package.depends, *exported]))


def _is_distribution(content: PackageContent, layout: str, context: ActionContext[CondaParameters]) -> bool:
    if layout == "prefix" and content.brought is not None:
        message = f"the tree contains {content.brought}, which does not belong at the root of an environment"
        raise StageError(message, hint='set layout = "python", or exclude the tree\'s Python metadata')
    if not content.paths or layout == "prefix":
        return False
    return layout == "python" or content.brought is not None or "python" in context.ingredients.axes


def _distribution(context: ActionContext[CondaParameters], content: PackageContent) -> _Made:
    """Files below the site-packages of one Python, or of any."""
    package, wanted = context.parameters.package, context.parameters.conda
    prefix = package.prefix if wanted.prefix is None else wanted.prefix
    called = partial(_called, context.parameters.called)
    metadata = metadata_of(context, content, version=wanted.version, conda=called)
    places = as_distribution(content, name=metadata.name, version=wanted.version, prefix=prefix)
    tags = tags_of(context, content, places)
    python = _python(context, tags)
    subdir = "noarch" if python is None and tags.pure else _subdir(context, tags)
    kept, bill = with_bill(context, content, places, metadata)
    entries = [(content.entries[path], place) for path, place in kept.items()]
    made, files = conda_package_from_dist(
        [
            *(
                Member(path=place, data=_chunks(context.store, entry), size=entry.size, executable=entry.executable)
                for entry, place in entries
                if entry.kind == "file"
            ),
            *bill,
        ],
        metadata,
        WheelInfo(tags=tags.each, purelib=tags.pure, generator=context.parameters.generator),
        subdir=subdir,
        python=python,
        **_common(context, content, kept),
    )
    site = f"lib/python{python}/site-packages" if python else "site-packages"
    links = [CondaFile(path=f"{site}/{place}", link=entry.target) for entry, place in entries if entry.kind == "link"]
    return made, (*files, *links), python


def _at_prefix(context: ActionContext[CondaParameters], content: PackageContent) -> _Made:
    """Files where they lie in the tree; none at all for a metapackage."""
    wanted = context.parameters.conda
    called = partial(_called, context.parameters.called)
    check_inside(context, content, version=wanted.version, conda=called)
    folder = (wanted.prefix or "").strip("/")
    places = {path: f"{folder}/{path}" if folder else path for path in content.paths}
    tags = tags_of(context, content, places)
    python = _python(context, tags)
    subdir = "noarch" if tags.pure and (python is None or not places) else _subdir(context, tags)
    made, files = conda_package_from_tree(
        [_file(context.store, content.entries[path], place) for path, place in places.items()],
        metadata_of(context, content, version=wanted.version, conda=called),
        platform=tags.platform,
        subdir=subdir,
        python=python,
        **_common(context, content, places),
    )
    return made, files, python


def _called(name: str, distribution: str) -> bool:
    """Whether conda calls a distribution so."""
    return conda_name(canonicalize_name(distribution), read_shipped(CONDA_NAMES)) == name


def _common(context: ActionContext[CondaParameters], content: PackageContent, places: dict[str, str]) -> dict[str, Any]:
    """What both layouts take from the recipe, and from the machine code."""
    wanted = context.parameters.conda
    runtimes = runtime_depends(elf_facts(context.store, content.entries, places), read_shipped(CONDA_NEIGHBOURS))
    pins = {name: (spec,) for name, spec in context.parameters.pins.items()}
    return {
        "name": context.parameters.called,
        "build": wanted.build,
        "build_number": wanted.build_number,
        "variant": wanted.variant,
        "names": {**read_shipped(CONDA_NAMES), **pins},
        "depends": merged(runtimes, wanted.depends),
        "constrains": wanted.constrains,
        "run_exports": RunExports(weak=wanted.weak, strong=wanted.strong) if wanted.weak or wanted.strong else None,
    }


def _python(context: ActionContext[CondaParameters], tags: Tags) -> str | None:
    """The Python that files are for: the axis says it, else the names of extension modules do."""
    axis = context.ingredients.axes.get("python")
    if axis is not None:
        return axis
    for text in tags.each:
        for tag in parse_tag(text):
            found = re.fullmatch(r"cp3(\d+)(t?)", tag.abi)
            if found is not None:
                return f"3.{found[1]}{found[2]}"
    return None


def _subdir(context: ActionContext[CondaParameters], tags: Tags) -> str:
    """The channel's folder for the platform of the machine code, else of the machine that built it."""
    return conda_subdir(context.parameters.platform.replace("-", "_") if tags.pure else tags.platform)


def _file(store: Store, entry: Entry, place: str) -> CondaFile:
    if entry.kind == "link":
        return CondaFile(path=place, link=entry.target)
    return CondaFile(path=place, data=_chunks(store, entry), size=entry.size, executable=entry.executable)


def _chunks(store: Store, entry: Entry) -> Callable[[], Iterator[bytes]]:
    assert entry.blob is not None  # noqa: S101 (a file has content)
    return blob_chunks(store, entry.blob)


def _compiled(
    context: ActionContext[CondaParameters], package: CondaPackage, files: tuple[CondaFile, ...], python: str | None
) -> tuple[CondaFile, ...]:
    """What the Python of the recipe makes of the sources; none where no environment uses that version."""
    if python is None or context.parameters.python is None:
        return ()
    context.progress("compiling Python files")
    compiled = compile_pyc(
        files,
        interpreter_for(context, python),
        python=python,
        placeholder=package.placeholder,
        environ=context.environ,
        threads=len(os.sched_getaffinity(0)),
    )
    for path, why in compiled.skipped:
        context.log.say(f"not compiled: {path}: {why}")
    return compiled.files
