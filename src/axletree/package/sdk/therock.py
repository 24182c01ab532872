"""What TheRock's own builder wants to know of an SDK: two JSON files in its artifact ``base``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import UsageError
from axletree.package.sdk.artifact_name import may_be_target
from axletree.package.sdk.entries import GENERIC

if TYPE_CHECKING:
    from collections.abc import Sequence

MANIFEST_PATH = "share/therock/therock_manifest.json"
"""Says of which kind the artifacts are: whether GPU code lies in archives of its own, ``.kpack``."""
DIST_INFO_PATH = "share/therock/dist_info.json"
"""Says for which GPUs there is code: what ``rocm-sdk targets`` prints."""


def therock_records(targets: Sequence[str]) -> dict[str, bytes]:
    """Path below the prefix -> content, for an SDK whose libraries hold their GPU code themselves.

    Args:
        targets: GPUs that there is code for, as CMake's list has them.

    Raises:
        UsageError: one is no GPU.
    """
    wrong = [target for target in targets if target == GENERIC or not may_be_target(target)]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is not a GPU target", hint="expected a name such as gfx90a")
    found = {
        MANIFEST_PATH: {"flags": {"KPACK_SPLIT_ARTIFACTS": False}},
        DIST_INFO_PATH: {"dist_amdgpu_targets": ";".join(dict.fromkeys(targets))},
    }
    return {path: msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n" for path, value in found.items()}
