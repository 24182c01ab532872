"""Console scripts: each becomes the program of its name, in the devel tree or in a package's own folder."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NoReturn

from ._detect import is_on
from ._environment import tool_variables
from ._sdk import SdkError, find_root, this_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from ._sdk import Command, Sdk, SdkPackage


def launch(folder: str, name: str) -> NoReturn:
    """Become a program with this process's arguments; variables that it looks at are set unless they are.

    A program that needs the whole SDK gets it expanded first. No other one expands anything. Where the program is
    missing, one line says so and the exit code is 127.

    Args:
        folder: platform folder of the package that the console script belongs to.
        name: the console script.
    """
    try:
        path, root = _find(this_sdk(), folder, name)
        for variable, text in tool_variables(this_sdk(), root).items():
            os.environ.setdefault(variable, text)
        _become(path)
    except FileNotFoundError as error:
        _stop(name, str(error), 127)
    except PermissionError as error:
        _stop(name, str(error), 126)
    except (SdkError, ImportError, OSError) as error:
        _stop(name, str(error), 1)


def _find(sdk: Sdk, folder: str, name: str) -> tuple[Path, Path]:
    """A program and the root that it belongs to."""
    package = next((each for each in sdk.file.packages if each.folder == folder), None)
    if package is None:
        raise SdkError(f"{sdk.file.sdk} {sdk.file.version} does not include a package with the folder {folder}")
    command = next((each for each in sdk.shipped(package).commands if each.name == name), None)
    if command is None:
        raise FileNotFoundError(
            f"{package.dist} does not contain this program: install the same version of {sdk.file.dist}"
        )
    root = _root_for(sdk, package, command)
    own = sdk.folder(package)
    if own is not None and not (root / command.path).is_file():
        root = own
    path = root / command.path
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: reinstall {package.dist}")
    return path, root


def _root_for(sdk: Sdk, package: SdkPackage, command: Command) -> Path:
    if command.devel or package.kind == "devel":
        from ._devel import expand

        if sdk.devel_module() is not None:
            return expand(sdk, quiet=True)
        if is_on(sdk.setting("VERBOSE")) and (devel := sdk.devel_package()):
            sys.stderr.write(f"{command.name}: without headers and CMake files ({sdk.install_hint([devel])})\n")
    return find_root(sdk)[0]


def _become(path: Path) -> NoReturn:
    words = [str(path), *sys.argv[1:]]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "nt":  # there exec does not wait for the program
        raise SystemExit(subprocess.call(words))
    os.execv(words[0], words)  # noqa: S606  # no shell is wanted


def _stop(name: str, text: str, code: int) -> NoReturn:
    sys.stderr.write(f"{name}: {text}\n")
    raise SystemExit(code)
