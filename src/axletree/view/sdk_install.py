"""How to install an SDK's packages from where they lie, as commands that can be copied."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Protocol

from packaging.utils import canonicalize_name
from packaging.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Installable(Protocol):
    """An SDK whose packages were built or uploaded."""

    @property
    def sdk(self) -> str:
        """The selector's distribution."""

    @property
    def version(self) -> str:
        """Of all packages."""

    @property
    def extras(self) -> Sequence[str]:
        """Of the selector, without those for GPUs that are named."""

    @property
    def gpu_extras(self) -> Sequence[str]:
        """``libraries-FAMILY`` and ``device-TARGET``."""

    @property
    def default_family(self) -> str:
        """What ``libraries`` means, where the selector is a wheel; empty where there is no GPU code."""


def install_lines(
    sdk: Installable, *, index: str, links: str, at_install: bool = False, variable: str = ""
) -> Iterator[str]:
    """Commands for pip and uv.

    Args:
        sdk: what is to be installed.
        index: address of its simple index.
        links: folder or page for ``--find-links``; empty: there is none.
        at_install: whether the selector chooses where it is installed.
        variable: with which one chooses for it.
    """
    wanted = [extra for extra in ("libraries", "devel") if extra in sdk.extras] or list(sdk.extras)
    spec = _requirement(sdk, wanted)
    pre = " --prerelease allow" if Version(sdk.version).is_prerelease else ""
    where = "for the GPUs of the host" if at_install else f"for {sdk.default_family}" if sdk.default_family else ""
    yield f"install it{f' {where}' if where else ''}, from its index:"
    yield f"  pip install --index-url {shlex.quote(index)} {spec}"
    yield f"  uv pip install --index-url {shlex.quote(index)}{pre} {spec}"
    if links:
        yield "or without an index:"
        yield f"  pip install --no-index --find-links {shlex.quote(links)} {spec}"
        yield f"  uv pip install --no-index --find-links {shlex.quote(links)}{pre} {spec}"
    rest = [extra for extra in wanted if extra != "libraries"]
    others = [[extra, *rest] for extra in _examples(sdk)]
    if others:
        yield "for other GPUs ask for:"
        yield from (f"  {_requirement(sdk, extras)}" for extras in others)
    if at_install and variable and sdk.default_family:
        yield f"or name them: {variable}={sdk.default_family} before pip; without a GPU it is {sdk.default_family}"


def _requirement(sdk: Installable, extras: Sequence[str]) -> str:
    asked = f"[{','.join(extras)}]" if extras else ""
    return f"'{sdk.sdk}{asked}=={sdk.version}'"


def _examples(sdk: Installable) -> Iterator[str]:
    """An extra for a family and one for a target, both not what is meant anyway."""
    default = canonicalize_name(sdk.default_family) if sdk.default_family else ""
    for kind in ("libraries-", "device-"):
        yield from [extra for extra in sdk.gpu_extras if extra.startswith(kind) and extra != kind + default][-1:]
