"""The documents of an OCI layout, the same bytes for the same image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.values import canonical_json
from axletree.package.image.documents import MANIFEST, REF_NAME, Index
from axletree.package.image.identity import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.core.values import Digest
    from axletree.package.image.documents import Descriptor

LAYOUT_TEXT = '{"imageLayoutVersion":"1.0.0"}'


def config_document(platform: str, diff_ids: Sequence[Digest], variables: Mapping[str, str]) -> bytes:
    """The configuration of an image that had none."""
    system, _, architecture = platform.partition("/")
    details = {"Env": [f"{name}={value}" for name, value in sorted(variables.items())]} if variables else {}
    rootfs = {"type": "layers", "diff_ids": [f"{PREFIX}{each}" for each in diff_ids]}
    return canonical_json({"architecture": architecture, "os": system, "config": details, "rootfs": rootfs})


def manifest_document(config: Descriptor, layers: Sequence[Descriptor]) -> bytes:
    """A manifest."""
    return canonical_json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers})


def index_document(manifest: Descriptor, tag: str | None) -> bytes:
    """``index.json`` of a layout with one image."""
    tagged = msgspec.structs.replace(manifest, annotations=None if tag is None else {REF_NAME: tag})
    # Written out: what is at its default would be left out, and readers want the version.
    return canonical_json({"schemaVersion": 2, **msgspec.to_builtins(Index(manifests=(tagged,)))})
