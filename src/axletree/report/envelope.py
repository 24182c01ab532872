"""A report as JSON: one envelope and one way to write it, for every command."""

from __future__ import annotations

import json
from pathlib import PurePath

import msgspec

from axletree import __version__

SCHEMA = 1
"""Version of the envelope and of the reports in it. Within a version fields are added, never renamed or removed."""


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints: a report, and what is needed to read it."""

    schema: int = SCHEMA
    """Version of the envelope and of the reports in it."""
    command: str
    """The command that reports, such as ``env verify``."""
    version: str = __version__
    """Version of Axletree."""
    result: object
    """The report."""


def encode_report(command: str, report: object) -> str:
    """The report of a command in its envelope, as one line of JSON.

    Names of files that are not UTF-8 are written as Python does: each odd byte as an escaped lone surrogate.
    """
    envelope = Envelope(command=command, result=report)
    try:
        return msgspec.json.encode(envelope, enc_hook=_plain).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(envelope, enc_hook=_plain), separators=(",", ":"))


def is_report(line: bytes) -> bool:
    """Whether a line of a command's output is its report, and no event before it."""
    return line.startswith(b'{"schema":')


def _plain(value: object) -> str:
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"a report cannot contain {type(value).__name__}")
