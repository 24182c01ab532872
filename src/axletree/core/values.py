"""Names for strings that must not be mixed, and the one way to turn a value into bytes and a digest.

Every key, tree and record of Axletree is named by a SHA-256 over canonical JSON, so what "canonical" means is decided
here and nowhere else: UTF-8, keys sorted, no white space, no floats with a hidden rounding.
"""

from __future__ import annotations

import hashlib
from typing import NewType

import msgspec

Digest = NewType("Digest", str)
"""SHA-256 of some content, 64 lower-case hexadecimal digits."""

Key = NewType("Key", str)
"""SHA-256 over everything that can change a stage's result, 64 lower-case hexadecimal digits."""

StageId = NewType("StageId", str)
"""What people call a stage of a plan: ``build[py311-cpu]``. Unique in a plan, stable between runs, in no key."""

"""What may enter a key. No floats: two writers could print the same number differently."""

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: object) -> bytes:
    """Encode a JSON-able value (or a msgspec structure) as sorted, compact UTF-8 JSON."""
    return _ENCODER.encode(value)


def digest_of(data: bytes) -> Digest:
    """SHA-256 of bytes."""
    return Digest(hashlib.sha256(data).hexdigest())


def key_of(ingredients: object) -> Key:
    """The key of a JSON-able value: the digest of its canonical JSON."""
    return Key(digest_of(canonical_json(ingredients)))
