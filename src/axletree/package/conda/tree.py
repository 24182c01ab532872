"""A tree as a conda package at the root of the environment: libraries, headers and CMake files of a C++ project.

It also makes packages without files: metapackages, which only require others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.conda.dist import describe, merged
from axletree.package.conda.model import CondaFile, CondaPackage, RunExports
from axletree.package.conda.requires import CondaTarget, Names, convert_requires, platform_depends, python_depends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.package.wheel.metadata import Metadata

_LICENSE = re.compile(r"(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS)[^/]*", re.IGNORECASE)


def conda_package_from_tree(
    files: Sequence[CondaFile],
    metadata: Metadata,
    *,
    platform: str,
    subdir: str,
    python: str | None,
    name: str,
    build: str,
    build_number: int,
    variant: Mapping[str, str],
    names: Names,
    depends: Iterable[str] = (),
    constrains: Iterable[str] = (),
    run_exports: RunExports | None = None,
) -> tuple[CondaPackage, tuple[CondaFile, ...]]:
    """Describe a package whose files lie where their paths say, below the environment's root.

    Licence files at the root of the tree go to ``info/licenses``: at the root of an environment those of all packages
    would meet.

    Args:
        files: with their paths below the prefix.
        metadata: gives version, requirements and what people read about it.
        platform: platform tag of its machine code, ``manylinux_2_28_x86_64``, or ``any``.
        subdir: ``linux-64`` ..., or ``noarch``.
        python: the one that its files are for, if they are for one.
        name: of the package; this and all below as
            :func:`~axletree.package.conda.dist.conda_package_from_dist` takes them.
        build: build string.
        build_number: higher ones are preferred.
        variant: what the hash in the build string stands for.
        names: distribution -> conda packages.
        depends: more dependencies.
        constrains: more constraints.
        run_exports: what dependents get.

    Raises:
        IntegrityError: requirements that conda can't have, a platform that is not the subdir's. Lists all.
    """
    target = CondaTarget(subdir=subdir, python=python)
    required = convert_requires(metadata, target, names)
    bound = python_depends(metadata, target) if python is not None else ()
    system = platform_depends([platform], subdir) if subdir != "noarch" else ()
    licenses = tuple(file for file in files if _LICENSE.fullmatch(file.path) and file.link is None)
    package = CondaPackage(
        name=name,
        version=metadata.version.lower().replace("-", "_"),
        build=build,
        build_number=build_number,
        subdir=subdir,
        noarch="generic" if subdir == "noarch" else None,
        depends=merged((*required.depends, *bound, *system), depends),
        constrains=merged(required.constrains, constrains),
        about=describe(metadata),
        run_exports=run_exports,
        hash_input=dict(variant),
        info=tuple(map(_as_license, licenses)),
    )
    return package, tuple(file for file in files if file not in licenses)


def _as_license(file: CondaFile) -> CondaFile:
    return msgspec.structs.replace(file, path=f"licenses/{file.path}", executable=False)
