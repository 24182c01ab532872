"""What a build against the SDK wants to have in its environment, as text for a shell."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from ._sdk import Sdk

SHELLS = ("sh", "fish", "json")


@dataclass(frozen=True)
class Environment:
    """Variables to set, and folders to put before those of list variables."""

    variables: dict[str, str]
    prepended: dict[str, str]


def build_environment(sdk: Sdk, root: Path) -> Environment:
    """What is wanted for an SDK whose root is a folder."""
    prepended = {"PATH": str(root / sdk.file.bin), "CMAKE_PREFIX_PATH": str(root / sdk.file.cmake)}
    return Environment(tool_variables(sdk, root), prepended)


def tool_variables(sdk: Sdk, root: Path) -> dict[str, str]:
    """Variables that the SDK's own programs look at.

    One for a place that this root does not have is left out: a compiler that is sent to an empty place looks nowhere
    else.
    """
    return {
        name: text.replace("{root}", str(root))
        for name, text in sorted(sdk.file.environment.items())
        if not text.startswith("{root}/") or os.pathsep in text or (root / text[len("{root}/") :]).exists()
    }


def render(environment: Environment, shell: str) -> str:
    """Text for ``eval`` of a shell, or JSON; what a list variable holds already stays behind what is put before it."""
    if shell == "json":
        known = {"set": environment.variables, "prepend": environment.prepended}
        return json.dumps(known, indent=1) + "\n"
    lines: list[str] = []
    for name, text in environment.variables.items():
        lines.append(f"set -gx {name} {_fish(text)}" if shell == "fish" else f"export {name}={shlex.quote(text)}")
    for name, folder in environment.prepended.items():
        if shell == "fish":
            lines.append(f"set -gx --path {name} {_fish(folder)} ${name}")
        else:
            lines.append(f'export {name}={shlex.quote(folder)}"${{{name}:+{os.pathsep}${name}}}"')
    return "\n".join(lines) + "\n"


def _fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
