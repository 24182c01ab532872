"""What names an image: its uncompressed layers and its platform, however they are packed and called."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from axletree.core.images import ImageId
from axletree.core.values import Digest, key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

PREFIX = "sha256:"
"""What digests begin with in OCI's documents. No other algorithm is read."""


def chain_id(layers: Sequence[Digest]) -> Digest:
    """OCI's ChainID: one digest for a stack of layers, the lowest first."""
    chain = layers[0]
    for layer in layers[1:]:
        chain = Digest(hashlib.sha256(f"{PREFIX}{chain} {PREFIX}{layer}".encode()).hexdigest())
    return chain


def image_id(layers: Sequence[Digest], platform: str) -> ImageId:
    """The name of an image in the store."""
    return ImageId(key_of({"chain": chain_id(layers), "platform": platform}))
