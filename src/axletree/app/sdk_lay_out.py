"""Lay an SDK out as TheRock's artifacts, whatever it comes from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.app.sdk_input import SdkInput
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host.sdk.artifacts import read_stages
from axletree.host.sdk.layout import lay_out
from axletree.package.sdk.descriptor import parse_descriptor
from axletree.package.sdk.entries import GENERIC
from axletree.package.sdk.therock import therock_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from axletree.report.sdk import LaidOut

_LARGEST = 1 << 20
"""Bytes of a descriptor."""
_DESCRIPTOR = re.compile(r"artifact[-_](?P<name>[A-Za-z0-9][A-Za-z0-9.+-]*)\.toml")


def read_stage_input(root: Path, descriptor: Path, *, artifact: str | None, target: str | None) -> SdkInput:
    """The files of a build's stage folders.

    Args:
        root: folder of the build, from which the descriptor names stage folders.
        descriptor: TOML file.
        artifact: name of the artifact; otherwise what the file is called, ``artifact-NAME.toml``.
        target: GPU or family that they were built for; otherwise for all.

    Raises:
        UsageError: the artifact has no name.
        RecipeError: the descriptor is wrong; with everything that is.
        IntegrityError: the folders don't hold what it says.
        HostError: something can't be read.
    """
    match = _DESCRIPTOR.fullmatch(descriptor.name)
    name = artifact or (match["name"] if match else None)
    if name is None:
        raise UsageError(f"cannot determine which artifact {descriptor.name} describes", hint="use --artifact NAME")
    try:
        with descriptor.open("rb") as file:
            text = file.read(_LARGEST).decode()
    except UnicodeDecodeError:
        raise UsageError(Problem(file=str(descriptor), message="the file is not UTF-8 text")) from None
    except OSError as error:
        raise HostError(Problem(file=str(descriptor), message=f"the file cannot be read: {error.strerror}")) from error
    described = parse_descriptor(text, filename=str(descriptor), artifact=name)
    notes: list[str] = []
    entries = read_stages(root, described, artifact=name, target=target or GENERIC, note=notes.append)
    return SdkInput(entries=entries, notes=tuple(notes))


def lay_out_sdk(
    read: SdkInput, out: Path, *, archives: bool, dist_targets: Sequence[str], epoch: int, threads: int
) -> LaidOut:
    """Write an SDK's files as artifacts.

    Args:
        read: the files.
        out: folder to make.
        archives: write archives instead of folders.
        dist_targets: GPUs that it has code for. Where there are any, what TheRock's builder reads is added.
        epoch: date of the members of archives.
        threads: how many archives are written at once.

    Raises:
        UsageError: the folder exists and something is in it, or a target is no GPU.
        IntegrityError: an artifact can't be called so, a file has changed meanwhile.
        HostError: something can't be read or written. Nothing is left behind then.
    """
    records = therock_records(dist_targets) if dist_targets else {}
    done = lay_out(read.entries, out, archives=archives, records=records, epoch=epoch, threads=threads)
    return msgspec.structs.replace(done, notes=read.notes)
