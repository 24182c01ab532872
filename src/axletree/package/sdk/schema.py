"""The JSON schema of SDK manifests, derived from the types that read them."""

from __future__ import annotations

from typing import Any

from axletree.package.sdk.manifest import Manifest
from axletree.recipe.schema import toml_schema


def sdk_manifest_schema() -> dict[str, Any]:
    """Schema of an SDK manifest, for editors that complete and check TOML.

    It holds the structure only; what a manifest means is checked by
    :func:`~axletree.package.sdk.manifest.parse_manifest`.
    """
    return toml_schema(Manifest, "Axletree SDK manifest", "Packages of an SDK.")
