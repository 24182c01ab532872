"""A log as blocks of plain lines: without colours, carriage returns, typographic quotes and what CI systems put before.

Everything here works on bytes, a block at a time: most of a log is never looked at more closely.
"""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK = 1 << 20
"""Bytes of a block, about."""

CONTEXT = 200
"""Lines on either side of a block that stay at hand."""

REACH = 14
"""Lines over which a match may reach."""

MAX_LINE = 16 << 10
"""Bytes of a line that are kept: beginning and end of longer ones."""

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\^_`-~])")
"""ECMA-48: control sequences (colours), strings (links, marks of Buildkite), character sets, and the short ones."""

_CONTROLS = bytes(number for number in range(32) if number not in b"\n\t") + b"\x7f"

_QUOTES = (
    (b"\xe2\x80\x98", b"'"),
    (b"\xe2\x80\x99", b"'"),
    (b"\xe2\x80\x9c", b'"'),
    (b"\xe2\x80\x9d", b'"'),
    (b"\xc2\xa0", b" "),
)

_ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIXES = (
    rb"[^\t\n]{1,200}\t[^\t\n]{1,200}\t(?=\d{4}-\d\d-\d\dT)",  # `gh run view --log`: job, step
    rb"\[?" + _ISO + rb"\]?[ \t](?:\d\d[OE]\+?[ ]?)?",  # GitHub, Azure, GitLab, Jenkins
    rb"\[?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\]?[ \t]{1,3}",  # Jenkins, tools with a clock
    rb"#\d{1,4} \d{1,7}\.\d{1,3} ",  # docker buildx
    rb"\[(?:rank|default|gw)\d{1,5}\]:? ?",  # torchrun, pytest-xdist
    rb"(?:(?: \xe2\x94\x82)+(?: |$))",  # rattler-build
    rb"##\[(?:error|warning|debug|command|section)\]",  # Azure, GitHub
)
_PREFIX = re.compile(rb"(?m)^(?:" + rb"|".join(_PREFIXES) + rb")++")
_ONCE = re.compile(rb"(?m)^(?:" + rb"|".join(_PREFIXES) + rb")")


class LogBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a log, with lines before and after them at hand."""

    lines: tuple[bytes, ...]
    """Plain lines: those before, its own, those after."""
    first: int
    """Number, in the raw log, of the first of them, counted from 1."""
    own: range
    """Which of them are its own."""
    text: bytes
    """Its own lines and the next :data:`REACH`, joined."""


def joined(lines: Iterable[bytes]) -> bytes:
    """Lines as one text, in UTF-8 that is valid whatever they hold."""
    text = b"\n".join(lines)
    return text if text.isascii() else text.decode("utf-8", "replace").encode()


class BinaryLogError(ValueError):
    """What was given is no text. The message says what it is."""


def read_blocks(chunks: Iterable[bytes]) -> Iterator[LogBlock]:
    """Blocks of plain lines; each line is of exactly one.

    Line numbers are those of the raw log, whatever was taken out of its lines.

    Args:
        chunks: The log, in pieces of any size. Memory does not grow with its length.

    Raises:
        BinaryLogError: it is no text.
    """
    number = 1
    before: list[bytes] = []
    current: list[bytes] | None = None
    for raw in _whole_lines(_as_utf8(chunks)):
        following = _plain(raw)
        if current is not None:
            yield _block(before, current, following[:CONTEXT], number)
            number += len(current)
            before = [*before, *current][-CONTEXT:]
        current = following
    if current is not None:
        yield _block(before, current, [], number)


def _block(before: list[bytes], lines: list[bytes], after: list[bytes], number: int) -> LogBlock:
    return LogBlock(
        lines=(*before, *lines, *after),
        first=number - len(before),
        own=range(len(before), len(before) + len(lines)),
        text=b"\n".join([*lines, *after[:REACH]]),
    )


def _whole_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces that end at the end of a line, of about the size of a block; the middle of giant lines is left out."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) < BLOCK:
            continue
        end = held.rfind(b"\n")
        if end >= 0:
            yield bytes(held[: end + 1])
            del held[: end + 1]
        if len(held) > 2 * MAX_LINE:
            del held[MAX_LINE:-MAX_LINE]
    if held:
        yield bytes(held)


def _plain(raw: bytes) -> list[bytes]:
    """Lines as a terminal would show them, without what came before them from CI systems."""
    text = raw.removesuffix(b"\n")
    if b"\x1b" in text:
        text = _ESCAPES.sub(b"", text)
    if b"\xe2\x80" in text or b"\xc2\xa0" in text:
        for quote, plain in _QUOTES:
            text = text.replace(quote, plain)
    lines = text.split(b"\n")
    if b"\r" in text:
        lines = [_last_written(line) if b"\r" in line else line for line in lines]
    joined = b"\n".join(lines)
    if _prefixed(joined):
        lines = _PREFIX.sub(b"", joined).split(b"\n")
    if max(map(len, lines)) > MAX_LINE:
        half = MAX_LINE // 2
        lines = [line if len(line) <= MAX_LINE else line[:half] + b" ... " + line[-half:] for line in lines]
    return [line.translate(None, _CONTROLS) for line in lines] if _has_controls(joined) else lines


def _last_written(line: bytes) -> bytes:
    """Of a line that was written over, what stayed."""
    return next((part for part in reversed(line.split(b"\r")) if part.strip()), b"")


def _has_controls(text: bytes) -> bool:
    return len(text.translate(None, _CONTROLS)) != len(text)


def _prefixed(text: bytes) -> bool:
    """Whether a look at some lines shows prefixes: to ask all of them would take most of the time."""
    lines = text[: 64 << 10].split(b"\n")
    return any(_ONCE.match(line) for line in lines[:200]) or b"\n[rank" in text or b" \xe2\x94\x82" in text


def _as_utf8(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The log in UTF-8, whatever the byte order mark says that it is in; refuses what is no text."""
    decoder: codecs.IncrementalDecoder | None = None
    started = False
    for chunk in chunks:
        if not chunk:
            continue
        if not started:
            started = True
            decoder = _decoder(chunk)
            if decoder is None:
                _refuse_binary(chunk)
                yield chunk.removeprefix(codecs.BOM_UTF8)
                continue
        yield decoder.decode(chunk).encode() if decoder is not None else chunk


def _decoder(start: bytes) -> codecs.IncrementalDecoder | None:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return codecs.getincrementaldecoder("utf-16")("replace")
    return None


_PACKED = {
    b"\x1f\x8b": "a gzip file; to read it, run `zcat FILE | axletree diagnose -`",
    b"\x28\xb5\x2f\xfd": "a zstd file; to read it, run `zstdcat FILE | axletree diagnose -`",
    b"\xfd7zXZ\x00": "an xz file; to read it, run `xzcat FILE | axletree diagnose -`",
    b"PK\x03\x04": "a ZIP archive; unpack it first",
    b"\x7fELF": "an ELF file",
}


def _refuse_binary(start: bytes) -> None:
    for magic, words in _PACKED.items():
        if start.startswith(magic):
            raise BinaryLogError(words)
    sample = start[: 8 << 10]
    if sample.count(b"\x00") > max(1, len(sample) // 100):
        raise BinaryLogError("a binary file")
