"""Command lines that install packages of ours, and can't install anybody else's under the same name.

pip has no order among indexes: of two files of one version it takes the one with the higher build tag, from whichever
index, and an index in its configuration counts beside those of a command. So wheels are named by their address, each of
them, with what they require of ours (:mod:`axletree.package.closure`); what they require of others comes from where the
user has it. An address is percent-encoded: pip and uv read some other characters of a path as their own syntax.

Where that can't be known beforehand, a command shuts out every other place. conda clients do order channels, once told
to, and take exactly the build that is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.package.wheel.names import parse_wheel_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from axletree.package.closure import Closure

PIP_ALONE = "PIP_CONFIG_FILE=/dev/null pip --isolated install --no-index"
"""pip that looks nowhere but where the command says: ``--no-index`` alone leaves places of its configuration."""
UV_ALONE = "uv pip install --no-config --no-index"


def wheel_commands(closure: Closure) -> dict[str, str]:
    """Client -> the command that installs wheels."""
    wanted = " ".join(
        quoted(f"{requirement(parse_wheel_name(offer.filename).project, extras)} @ {offer.url}")
        for offer, extras in closure.files
    )
    return {"pip": f"pip install {wanted}", "uv": f"uv pip install {wanted}"}


def alone_commands(place: str, name: str, extras: Sequence[str], version: str) -> dict[str, str]:
    """Client -> the command that installs a distribution from one place and no other, dependencies included.

    Args:
        place: address of a folder of files, or of a page that lists them.
        name: of the distribution.
        extras: that are asked for.
        version: exactly which.
    """
    where = f"--find-links {quoted(place)} {quoted(f'{requirement(name, extras)}=={version}')}"
    allow = " --prerelease allow" if Version(version).is_prerelease else ""  # uv would take none as a dependency
    return {"pip": f"{PIP_ALONE} {where}", "uv": f"{UV_ALONE}{allow} {where}"}


def conda_commands(channel: str, packages: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Client -> the command that installs conda packages.

    Not as ``CHANNEL::NAME``: conda takes the address of a channel there for a name on its own server.

    Args:
        channel: its address.
        packages: name, version and build string of each.
    """
    wanted = " ".join(quoted(f"{name}={version}={build}") for name, version, build in packages)
    first = f"--strict-channel-priority -c {quoted(channel)} {wanted}"
    return {
        "conda": f"conda install {first}",
        "micromamba": f"micromamba install {first}",
        # pixi's priority is strict always, and it would add a channel behind the others.
        "pixi": f"pixi workspace channel add --prepend {quoted(channel)} && pixi add {wanted}",
    }


def requirement(name: str, extras: Sequence[str]) -> str:
    """A distribution with extras: ``rocm[devel,libraries]``."""
    asked = f"[{','.join(extras)}]" if extras else ""
    return canonicalize_name(name) + asked


def quoted(text: str) -> str:
    """A word of a shell's command line, always in quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
