"""RECORD (PEP 376, PEP 427): each file of a wheel with its hash and size."""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io
import re
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import is_safe_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_AGAIN = "download the wheel or build it again"
_QUOTED = re.compile(r'[",\r\n]')

SIGNATURES = ("RECORD.jws", "RECORD.p7s")
OTHER_HASHES = frozenset({"sha384", "sha512", "sha3_256", "sha3_384", "sha3_512", "blake2b", "blake2s"})
"""Algorithms besides SHA-256 that are at least as good, by their names in ``hashlib``: wheels may use them."""
FORBIDDEN_HASHES = frozenset({"md5", "sha1", "sha224"})
"""Algorithms that the format of wheels forbids by name (PEP 427)."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class RecordEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A line of RECORD."""

    path: str
    hash: str = ""
    """``sha256=`` and the digest in base64 for URLs, without padding; empty for RECORD itself."""
    size: int | None = None

    @property
    def algorithm(self) -> str:
        """Name of the hash function; empty where there is no hash."""
        return self.hash.partition("=")[0]


class RecordIssue(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which RECORD and the content differ."""

    kind: Literal["missing", "extra", "hash", "size", "unsafe", "unchecked", "twice"]
    """``missing``: a file without a line; ``extra``: a line without a file; ``unchecked``: no hash, or none that
    counts."""
    path: str
    detail: str


class ReadContent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was really read of a file."""

    sha256: str
    """Hexadecimal; empty where no hash was taken."""
    size: int
    other: str = ""
    """The digest as RECORD writes it, where RECORD names another algorithm than SHA-256 for the file."""


def encode_hash(digest: bytes, algorithm: str = "sha256") -> str:
    """A digest as RECORD writes it."""
    return f"{algorithm}={binascii.b2a_base64(digest, newline=False).translate(_URL_SAFE, b'=').decode()}"


def decode_hash(text: str) -> bytes:
    """The digest in a hash field that :func:`encode_hash` could have written."""
    encoded = text.partition("=")[2].rstrip("=")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


def parse_record(data: bytes, *, file: str = "RECORD") -> tuple[RecordEntry, ...]:
    """Read a RECORD file.

    Raises:
        IntegrityError: no CSV of three columns in UTF-8; lists every bad line.
    """
    problems: list[Problem] = []
    entries: list[RecordEntry] = []
    try:
        for number, row in enumerate(_rows(data.decode("utf-8")), start=1):
            if len(row) == 3 and row[0] and (not row[2] or (row[2].isascii() and row[2].isdigit())):
                size = int(row[2]) if row[2] and len(row[2]) < 20 else None
                entries.append(RecordEntry(path=row[0], hash=row[1], size=size))
            elif row:
                line = ",".join(row)[:100]
                problems.append(
                    Problem(
                        file=file,
                        line=number,
                        message="damaged wheel: the line does not consist of a path, a hash and a size",
                        excerpt=line,
                    )
                )
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"damaged wheel: the file is not valid UTF-8 CSV: {error}"
        raise IntegrityError(Problem(file=file, message=message), hint=_AGAIN) from error
    if problems:
        raise IntegrityError(*problems[:20], hint=_AGAIN)
    return tuple(entries)


def render_record(entries: Iterable[RecordEntry]) -> bytes:
    """The bytes of a RECORD file, lines in the given order."""
    entries = tuple(entries)
    text = "".join([f"{entry.path},{entry.hash},{'' if entry.size is None else entry.size}\n" for entry in entries])
    if '"' in text or "\r" in text or text.count(",") != 2 * len(entries) or text.count("\n") != len(entries):
        # Some field needs quotes; looking at each for that takes longer than all the rest.
        lines = ((_quote(entry.path), _quote(entry.hash), entry.size) for entry in entries)
        text = "".join(f"{path},{digest},{'' if size is None else size}\n" for path, digest, size in lines)
    return text.encode()


def _rows(text: str) -> Iterator[list[str]]:
    if '"' in text or "\r" in text:
        return csv.reader(io.StringIO(text, newline=""), strict=True)
    return (line.split(",") if line else [] for line in text.split("\n"))  # in half the time


def _quote(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if _QUOTED.search(field) else field


def check_record(
    record: Iterable[RecordEntry], contents: Mapping[str, ReadContent], *, dist_info: str
) -> tuple[RecordIssue, ...]:
    """Compare RECORD with the files that are there.

    Args:
        record: its lines.
        contents: path -> what was read, every file of the wheel (so these paths are safe). Where no hash was taken,
            none is compared.
        dist_info: the wheel's metadata folder.
    """
    return tuple(_issues(tuple(record), contents, f"{dist_info}/RECORD"))


def _issues(record: tuple[RecordEntry, ...], contents: Mapping[str, ReadContent], own: str) -> Iterator[RecordIssue]:
    listed: set[str] = set()
    exempt = {own, *(f"{own.rpartition('/')[0]}/{name}" for name in SIGNATURES)}
    for entry in record:
        path = entry.path
        content = contents.get(path)
        if content is None and not is_safe_path(path):
            yield RecordIssue(kind="unsafe", path=path, detail="the path leads outside the installation folder")
            continue
        if path in listed:
            yield RecordIssue(kind="twice", path=path, detail="the file is listed twice")
        listed.add(path)
        if content is None:
            yield RecordIssue(kind="extra", path=path, detail="the file is listed in RECORD, but not in the wheel")
        elif path not in exempt and not _confirms(entry, content):
            yield from _compare(entry, content)
    for path in sorted(contents.keys() - listed - exempt):
        yield RecordIssue(kind="missing", path=path, detail="the file is in the wheel, but not listed in RECORD")


def _confirms(entry: RecordEntry, content: ReadContent) -> bool:
    """Whether all is well with a line, as it is with nearly all."""
    return (
        entry.size == content.size and content.sha256 != "" and entry.hash == encode_hash(bytes.fromhex(content.sha256))
    )


def _compare(entry: RecordEntry, content: ReadContent) -> Iterator[RecordIssue]:
    algorithm = entry.algorithm
    trouble = _hash_trouble(entry, algorithm)
    if trouble:
        yield RecordIssue(kind="unchecked", path=entry.path, detail=trouble)
    elif content.sha256:
        found = encode_hash(bytes.fromhex(content.sha256)) if algorithm == "sha256" else content.other
        if not found:
            yield RecordIssue(
                kind="unchecked", path=entry.path, detail=f"the file is listed only with a hash of type {algorithm}"
            )
        elif entry.hash == f"sha256={content.sha256}":
            detail = "the file is listed with a hexadecimal hash, but RECORD requires base64"
            yield RecordIssue(kind="unchecked", path=entry.path, detail=detail)
        elif entry.hash.rstrip("=") != found:
            detail = f"the file has hash {found}, but RECORD lists {entry.hash[:120]}"
            yield RecordIssue(kind="hash", path=entry.path, detail=detail)
    if entry.size is not None and entry.size != content.size:
        detail = f"the file has {content.size} bytes, but RECORD lists {entry.size}"
        yield RecordIssue(kind="size", path=entry.path, detail=detail)


def _hash_trouble(entry: RecordEntry, algorithm: str) -> str:
    """Why a line's hash says nothing; empty where it does say something."""
    if algorithm == "sha256" or algorithm in OTHER_HASHES:
        return ""
    if not entry.hash:
        return "the file is listed without a hash"
    if algorithm in FORBIDDEN_HASHES:
        return f"the file is listed with a hash of type {algorithm}, which wheels must not use"
    return f"the file is listed with {algorithm[:40]!r}, which is not a supported hash"


def content_of(data: bytes) -> ReadContent:
    """Digest and size of a file that is in memory."""
    return ReadContent(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
