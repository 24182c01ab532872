"""What planning must know for conda packages and for tests by a conda client; nothing where a recipe has neither."""

from __future__ import annotations

import sysconfig
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from axletree.core.errors import HostError
from axletree.host.conda_install import INSTALL_RATTLER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.recipe.target import Target


def conda_inputs(targets: Sequence[Target]) -> dict[str, Any]:
    """Fields of the plan's inputs.

    Raises:
        HostError: a table can't be read.
    """
    packages = {package.name for target in targets for package in target.packages if package.conda is not None}
    if not packages:
        return {}
    # Not paid for by who makes wheels.
    from axletree.host.conda_owners import owners_digest  # noqa: PLC0415
    from axletree.host.shipped_data import read_shipped, shipped_digest  # noqa: PLC0415
    from axletree.package.conda.neighbours import CONDA_NEIGHBOURS  # noqa: PLC0415
    from axletree.package.conda.requires import CONDA_NAMES, conda_name  # noqa: PLC0415
    from axletree.package.conda.writer import COMPRESSOR  # noqa: PLC0415

    names = read_shipped(CONDA_NAMES)
    return {
        "conda_names": {package: conda_name(canonicalize_name(package), names) for package in sorted(packages)},
        "conda_table": shipped_digest(CONDA_NAMES),
        "conda_neighbours": shipped_digest(CONDA_NEIGHBOURS),
        "conda_owners": owners_digest(),
        "conda_compressor": COMPRESSOR,
        "platform": sysconfig.get_platform(),
    }


def client_versions(targets: Sequence[Target], *, only_plan: bool = False) -> dict[str, str]:
    """Versions of the clients that tests install with; ``only_plan`` takes an empty one for what is missing.

    Raises:
        HostError: a test wants a conda client, but py-rattler is not installed.
    """
    found = {"pip": version("pip"), "uv": version("uv")}
    wanting = next((test for target in targets for test in target.tests if "conda" in test.installers), None)
    if wanting is not None:
        try:
            found["conda"] = f"py-rattler {version('py-rattler')}"
        except PackageNotFoundError:
            if only_plan:
                return found | {"conda": ""}
            message = f"test {wanting.name!r} installs with a conda client, but py-rattler is not installed"
            raise HostError(message, hint=INSTALL_RATTLER) from None
    return found
