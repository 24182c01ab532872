"""All facts of a host, as one value that can be written down and read back."""

from __future__ import annotations

import msgspec

from axletree.check.host.gpu import Cuda, Rocm
from axletree.check.host.libraries import Libraries
from axletree.check.host.part import FactGroup
from axletree.check.host.python import Git, Pythons
from axletree.check.host.system import Cpu, Disk, Memory, System
from axletree.check.host.toolchain import Toolchain
from axletree.check.host.variables import Variable  # noqa: TC001 (msgspec reads annotations)
from axletree.core.errors import Problem, UsageError
from axletree.core.formats import format_problem

SCHEMA = 1
"""Counts changes after which older programs would read a file wrongly; new fields alone do not."""

_HINT = "create the file with `axletree facts --json > host.json`"


class HostFacts(FactGroup, frozen=True, kw_only=True, omit_defaults=False):
    """The facts of a host: report of ``facts``. Groups and facts may be missing."""

    taken: str | None = None
    """Date and time (UTC, ISO 8601)."""
    axletree: str | None = None
    """Version of Axletree that collected them."""
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


class _Read(msgspec.Struct, frozen=True):
    """What tells which kind of file it is: facts by themselves, or in the envelope of a report."""

    schema: int | None = None
    command: str = "facts"
    result: dict[str, object] | None = None
    system: dict[str, object] | None = None


def decode_facts(data: bytes, *, file: str) -> HostFacts:
    """Read facts that ``axletree facts --json`` wrote, on this machine or another: the report, or only its result.

    Fields of newer versions are passed over.

    Args:
        data: JSON.
        file: what it is called in messages.

    Raises:
        UsageError: it is not that, or of another schema.
    """
    try:
        read = msgspec.json.decode(data, type=_Read)
        if read.command != "facts":
            message = f"the file is a report from `axletree {read.command}`, not host facts"
        elif read.schema is not None and (problem := format_problem(read.schema, SCHEMA, file=file, remake=_HINT)):
            raise UsageError(problem)
        elif read.result is None and read.system is None and read.schema is None:
            message = "the file does not contain host facts"
        else:
            if read.result is not None:
                return msgspec.convert(read.result, HostFacts)
            return msgspec.json.decode(data, type=HostFacts)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = error if data.lstrip().startswith(b"{") else "it is not a JSON object"
        message = f"the file does not contain host facts: {reason}"
    raise UsageError(Problem(file=file, message=message, hint=_HINT))
