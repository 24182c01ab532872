"""What ships about the owners of paths and libraries in conda environments, read together."""

from __future__ import annotations

from axletree.check.diagnosis.bringers import BRINGERS
from axletree.core.values import Digest, digest_of
from axletree.host.shipped_data import read_shipped, shipped_digest
from axletree.package.conda.needs import LibraryOwners
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS
from axletree.package.conda.requires import CONDA_NAMES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS


def library_owners() -> LibraryOwners:
    """What is known.

    Raises:
        HostError: a table can't be read.
    """
    return LibraryOwners(
        known=read_shipped(CONDA_NEIGHBOURS),
        providers=read_shipped(LIBRARY_PROVIDERS),
        names=read_shipped(CONDA_NAMES),
        others={library: conda for library, (_, conda) in read_shipped(BRINGERS).libraries.items()},
    )


def owners_digest() -> Digest:
    """What stands for all of it in keys.

    Raises:
        HostError: a table can't be read.
    """
    tables = (CONDA_NEIGHBOURS, LIBRARY_PROVIDERS, CONDA_NAMES, BRINGERS)
    return digest_of("".join(shipped_digest(table) for table in tables).encode())
