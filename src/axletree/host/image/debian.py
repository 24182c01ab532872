"""Images made of Debian packages: mmdebstrap makes the same root of the same packages, whatever it gets them from."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.core.units import plural
from axletree.host.files import file_errors
from axletree.host.image.source import Deb, SourceImage, tar_image
from axletree.host.run import finish, output_of
from axletree.package.image.apt import acquire_options, archive_line, stanzas
from axletree.recipe.toml import shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_SECONDS = 3600.0
_EPOCH = "946684800"
"""Latest date of a file, 2000-01-01: what is newer was written while the root was made."""
_LINES = 8
_LISTED = "/axletree-debs"
_LIST_DEBS = (
    'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-cache show --no-all-versions '
    "$(dpkg-query --admindir=\"$1/var/lib/dpkg\" -W -f '${binary:Package}=${Version} ') "
    f'>"$1{_LISTED}"'
)
_CLEAN = (
    # What says where the packages came from, and what mmdebstrap copies from this machine.
    f'cd "$1" && rm -f .{_LISTED} etc/apt/sources.list etc/apt/sources.list.d/* etc/apt/apt.conf.d/99mmdebstrap '
    "etc/dpkg/dpkg.cfg.d/99mmdebstrap etc/resolv.conf etc/hostname"
)


class DebianRoot(msgspec.Struct, frozen=True, kw_only=True):
    """What the root of a Debian image contains."""

    suite: str
    packages: tuple[str, ...]
    """Beside the required ones and apt."""
    mirror: str | None
    """Address of the archive, or a whole ``deb`` line; ``None``: the first one that apt is configured with here."""


def debian_image(wanted: DebianRoot, scratch: Path, *, environ: Mapping[str, str], apt: Path) -> SourceImage:
    """Make the image.

    Args:
        wanted: what is in it.
        scratch: a private folder.
        environ: variables of this process.
        apt: folder of apt's configuration, ``/etc/apt``.

    Raises:
        HostError: mmdebstrap is not installed or fails; apt is configured with no archive.
        OSError: the disk is full, or as the system says of the private folder.
    """
    name = f"debian {wanted.suite}"
    mirror = wanted.mirror or f"deb {_configured(apt)} {wanted.suite} main"
    root, listed = scratch / "root.tar", scratch / "debs"
    as_root = os.geteuid() == 0
    # What mmdebstrap mounts in its root is never seen outside: removing what a killed one left must not reach /proc.
    apart = ["unshare", "--mount", "--propagation=private"] if as_root else []
    command = [*apart, "mmdebstrap", f"--mode={'root' if as_root else 'unshare'}", "--variant=minbase", "--format=tar"]
    command += ["--skip=output/dev", "--dpkgopt=force-unsafe-io"]
    command += [f"--aptopt={option}" for option in _options(environ)]
    command += [f"--include={','.join(sorted(wanted.packages))}"] if wanted.packages else []
    command += [f"--customize-hook={_LIST_DEBS}", f"--customize-hook=download {_LISTED} {listed}"]
    command += [f"--customize-hook={_CLEAN}", wanted.suite, str(root), mirror]
    variables = {**environ, "SOURCE_DATE_EPOCH": _EPOCH, "LC_ALL": "C.UTF-8"}
    variables |= {"TMPDIR": str(scratch)} if as_root else {}
    if shutil.which("mmdebstrap", path=environ.get("PATH")) is None:
        hint = "install it (Debian, Ubuntu: apt-get install mmdebstrap uidmap)"
        raise HostError("mmdebstrap, which creates Debian images, is not installed", hint=hint)
    done = finish(command, environ=variables, seconds=_SECONDS)
    if done.code:
        raise _failed(wanted, "\n".join(map(shown, done.ending(_LINES).splitlines())))
    with file_errors(listed):
        debs = _debs(listed.read_text(encoding="utf-8", errors="replace"))
    made = tar_image(root, scratch, name=name)
    root.unlink()
    return msgspec.structs.replace(made, debs=debs)


def _failed(wanted: DebianRoot, ending: str) -> HostError:
    what = f"Debian {wanted.suite} with {plural(len(wanted.packages), 'package')}"
    hint = "check the suite, the names of the packages and the network; or set `mirror` to an archive that has them"
    return HostError(Problem(message=f"cannot create {what}: mmdebstrap failed with {ending}", hint=hint))


def _configured(apt: Path) -> str:
    files = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    files = sorted(files, key=lambda path: path.suffix != ".sources")
    texts = []
    for path in files:
        if path.is_file() and path.suffix in {".list", ".sources"}:
            with file_errors(path):
                texts.append((path.name, path.read_text(encoding="utf-8", errors="replace")))
    line = archive_line(texts)
    if line is None:
        hint = "set `mirror` of the image to the address of a Debian archive"
        raise HostError(f"apt is configured with no package archive in {apt}", hint=hint)
    return line


def _options(environ: Mapping[str, str]) -> Sequence[str]:
    return acquire_options(output_of(["apt-config", "dump"], environ=environ, seconds=30))


def _debs(text: str) -> tuple[Deb, ...]:
    found = {
        (fields["Package"], fields.get("Architecture", "")): Deb(
            name=fields["Package"],
            version=fields.get("Version", ""),
            architecture=fields.get("Architecture", ""),
            sha256=fields.get("SHA256", ""),
        )
        for fields in stanzas(text)
        if "Package" in fields
    }
    return tuple(each for _, each in sorted(found.items()))
