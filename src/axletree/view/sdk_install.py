"""How to install an SDK's packages from where they lie, as commands that can be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from axletree.package.closure import closures
from axletree.package.install import alone_commands, wheel_commands
from axletree.package.wheel.names import parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from axletree.package.closure import OwnWheel
    from axletree.report.sdk import Installable


def wheel_lines(sdk: Installable, wheels: Sequence[OwnWheel]) -> Iterator[str]:
    """Commands for pip and uv where the selector is a wheel: what it requires is known, so each file is named.

    Args:
        sdk: what is to be installed.
        wheels: all of its packages.
    """
    yield f"install it{f' for {sdk.default_family}' if sdk.default_family else ''}:"
    yield from _command_lines(sdk, lambda extras: _by_file(sdk, wheels, extras))


def at_install_lines(sdk: Installable, *, place: str, variable: str) -> Iterator[str]:
    """Commands for pip and uv where the selector is an sdist, which chooses where it is installed.

    Args:
        sdk: what is to be installed.
        place: address of the page or folder with its files.
        variable: with which one chooses for it.
    """
    yield "install it for the host's GPUs:"
    yield from _command_lines(sdk, lambda extras: alone_commands(place, sdk.sdk, extras, sdk.version))
    if variable and sdk.default_family:
        yield f"or set {variable}={sdk.default_family} before running pip; hosts without a GPU get {sdk.default_family}"


def _command_lines(sdk: Installable, commands: Callable[[Sequence[str]], Mapping[str, str]]) -> Iterator[str]:
    """The commands for what is wanted most often, and one for other GPUs."""
    usual: Sequence[str] = ("libraries", "devel")
    wanted = [extra for extra in usual if extra in sdk.extras] or list(sdk.extras)
    yield from (f"  {command}" for command in commands(wanted).values())
    for extras in _others(sdk, wanted):
        yield f"for other GPUs, such as {extras[0]}:"
        yield f"  {commands(extras)['pip']}"


def _others(sdk: Installable, wanted: Sequence[str]) -> Iterator[list[str]]:
    """The same for a family and for a target, both not what is meant anyway."""
    rest = [extra for extra in wanted if extra != "libraries"]
    default = canonicalize_name(sdk.default_family) if sdk.default_family else ""
    for kind in ("libraries-", "device-"):
        for extra in [extra for extra in sdk.gpu_extras if extra.startswith(kind) and extra != kind + default][-1:]:
            yield [extra, *rest]


def _by_file(sdk: Installable, wheels: Sequence[OwnWheel], extras: Sequence[str]) -> dict[str, str]:
    offers: dict[str, list[OwnWheel]] = {}
    for wheel in wheels:
        offers.setdefault(parse_wheel_name(wheel.filename).project, []).append(wheel)
    name = canonicalize_name(sdk.sdk)
    (selector,) = (each for each in offers[name] if parse_wheel_name(each.filename).version == sdk.version)
    (found,) = closures([selector], lambda project: offers.get(project, ()), extras={name: extras})
    return wheel_commands(found)
