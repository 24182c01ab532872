"""All facts of a host, as one value that can be written down and read back."""

from __future__ import annotations

import msgspec

from axletree.check.host.gpu import Cuda, Rocm
from axletree.check.host.libraries import Libraries
from axletree.check.host.part import Part
from axletree.check.host.python import Git, Pythons
from axletree.check.host.system import Cpu, Disk, Memory, System
from axletree.check.host.toolchain import Toolchain
from axletree.check.host.variables import Variable  # noqa: TC001 (msgspec reads annotations)
from axletree.core.errors import Problem, UsageError

SCHEMA = 1
"""Counts changes after which older programs would read a file wrongly; new fields alone do not."""


class HostFacts(Part, frozen=True, kw_only=True, omit_defaults=False):
    """What is known of a host. Every group may be left out, as every fact may."""

    schema: int = SCHEMA
    taken: str | None = None
    """Day and time (UTC, ISO 8601)."""
    axletree: str | None = None
    """Version of Axletree that took them."""
    system: System = System()
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    disks: tuple[Disk, ...] | None = None
    toolchain: Toolchain = Toolchain()
    python: Pythons = Pythons()
    git: Git = Git()
    cuda: Cuda = Cuda()
    rocm: Rocm = Rocm()
    libraries: Libraries = Libraries()
    variables: tuple[Variable, ...] | None = None
    """By name."""

    def variable(self, name: str) -> str | None:
        """Value of a variable; ``None`` where it is not set, or none are known."""
        return next((each.value for each in self.variables or () if each.name == name), None)


class _Envelope(msgspec.Struct, frozen=True):
    schema: int


def decode_facts(data: bytes, *, file: str) -> HostFacts:
    """Read facts that ``axletree facts`` wrote, on this machine or another. Fields of newer versions are passed over.

    Args:
        data: JSON.
        file: what it is called in messages.

    Raises:
        UsageError: it is not that, or of another schema.
    """
    hint = "such a file is written by `axletree facts > host.json`"
    try:
        schema = msgspec.json.decode(data, type=_Envelope).schema
        if schema == SCHEMA:
            return msgspec.json.decode(data, type=HostFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(Problem(file=file, message=f"does not contain facts of a host: {error}", hint=hint)) from error
    message = f"facts of schema {schema}; this version of Axletree reads {SCHEMA}"
    raise UsageError(Problem(file=file, message=message, hint=hint))
