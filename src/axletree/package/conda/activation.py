"""Scripts by which activating a conda environment sets variables, and deactivating it takes them back.

conda, mamba and pixi source ``etc/conda/activate.d/*.sh`` and ``etc/conda/deactivate.d/*.sh`` in shells of the POSIX
kind. The form is that of conda-forge's pytorch feedstock (recipe/activate.sh, deactivate.sh): what the user has set
stays, and a marker says what to take back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.package.conda.model import CondaFile

if TYPE_CHECKING:
    from collections.abc import Mapping

_ACTIVATE = """\
if [ -z "${{{name}+set}}" ]; then
    export {name}={value}
    export {name}_BACKUP=NOT_SET
fi
"""
_DEACTIVATE = """\
if [ "${{{name}_BACKUP-}}" = NOT_SET ]; then
    unset {name} {name}_BACKUP
fi
"""


def activation_files(package: str, variables: Mapping[str, str]) -> tuple[CondaFile, ...]:
    """The two scripts of a package; none without variables.

    Args:
        package: its name, which the scripts are called by.
        variables: name -> value, set where the user has not set it.
    """
    if not variables:
        return ()
    scripts = {
        "activate": "".join(_ACTIVATE.format(name=name, value=_quoted(value)) for name, value in variables.items()),
        "deactivate": "".join(_DEACTIVATE.format(name=name) for name in variables),
    }
    return tuple(
        CondaFile(path=f"etc/conda/{when}.d/{package}_{when}.sh", data=text.encode()) for when, text in scripts.items()
    )


def _quoted(text: str) -> str:
    """A text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
