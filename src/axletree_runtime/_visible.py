"""Which GPUs the variables of the GPU runtimes leave visible, in which order: as the runtimes themselves read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def visible_amd(uuids: Sequence[str], environ: Mapping[str, str]) -> tuple[list[int], list[str]]:
    """Indices of the GPUs that a HIP program sees, in its order, and what decided so.

    ROCr filters first (``amd_filter_device.cpp``), HIP counts in what that left (``rocdevice.cpp``).

    Args:
        uuids: of all GPUs in the order of the kernel's nodes; empty where one has none.
        environ: the variables.
    """
    indices, reasons = list(range(len(uuids))), []
    asked = environ.get("ROCR_VISIBLE_DEVICES")
    if asked is not None:
        indices = _rocr(asked, uuids)
        reasons.append(_kept("ROCR_VISIBLE_DEVICES", asked, len(indices), len(uuids)))
    # An empty HIP_VISIBLE_DEVICES is one that is not set; GPU_DEVICE_ORDINAL is read by OpenCL alone.
    name = next((each for each in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES") if environ.get(each)), None)
    if name is not None:
        before = len(indices)
        indices = [indices[place] for place in _hip(environ[name], [uuids[index] for index in indices])]
        reasons.append(_kept(name, environ[name], len(indices), before))
    if environ.get("GPU_DEVICE_ORDINAL"):
        reasons.append("GPU_DEVICE_ORDINAL is for OpenCL and has no effect on HIP")
    return indices, reasons


def visible_nvidia(uuids: Sequence[str], environ: Mapping[str, str]) -> tuple[list[int], list[str]]:
    """The same for ``CUDA_VISIBLE_DEVICES``, as CUDA's driver was seen to read it.

    The value is a list of numbers or one of UUIDs (beginnings are enough), and ends at the first that is neither or is
    of the other kind. Instances of GPUs (``MIG-...``) can't be told apart here: all GPUs count.
    """
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    everything = list(range(len(uuids)))
    if asked is None:
        return everything, []
    if asked.startswith("MIG-"):
        return everything, [f"CUDA_VISIBLE_DEVICES={asked} names GPU partitions, so all GPUs are used"]
    by_uuid = asked.startswith("GPU-")
    found: list[int] = []
    for token in asked.split(","):
        place = _cuda_uuid(token, uuids) if by_uuid else _leading_number(token)
        if not 0 <= place < len(uuids):
            break
        if place in found:
            found = []  # CUDA shows nothing where one is named twice
            break
        found.append(place)
    return found, [_kept("CUDA_VISIBLE_DEVICES", asked, len(found), len(uuids))]


def _cuda_uuid(token: str, uuids: Sequence[str]) -> int:
    if not token.startswith("GPU-"):
        return -1
    matching = [i for i, uuid in enumerate(uuids) if uuid.lower().startswith(token[: len(uuid)].lower())]
    return matching[0] if len(matching) == 1 else -1


def _leading_number(token: str) -> int:
    """As ``atoi`` reads it: ``1x`` is 1; -1 where there is no number."""
    found = re.match(r"\s*[+-]?\d+", token)
    return int(found[0]) if found else -1


def _rocr(asked: str, uuids: Sequence[str]) -> list[int]:
    """A GPU that is named twice ends the list, as one that is not there does."""
    found: list[int] = []
    for token in (part.strip().upper() for part in asked.split(",")[: len(uuids)]):
        place = _rocr_uuid(token, uuids) if token.startswith("G") else _number(token)
        if not 0 <= place < len(uuids) or place in found:
            break
        found.append(place)
    return found


def _rocr_uuid(token: str, uuids: Sequence[str]) -> int:
    if not 5 <= len(token) <= 20:
        return -1
    matching = [place for place, uuid in enumerate(uuids) if uuid.upper().startswith(token)]
    return matching[0] if len(matching) == 1 else -1


def _number(token: str) -> int:
    """As ``strtol`` with base 0 reads it: ``0x1`` is 1, ``010`` is 8."""
    octal = len(token) > 1 and token.startswith("0") and token.isdigit()
    try:
        return int(token, 8) if octal else int(token, 0)
    except ValueError:
        return -1


def _hip(asked: str, uuids: Sequence[str]) -> list[int]:
    """Only plain numbers count, without blanks; one that is named twice counts once."""
    found: list[int] = []
    for token in asked.split(","):
        place = next((i for i, uuid in enumerate(uuids) if uuid and token in uuid), -1) if "GPU-" in token else -1
        if place < 0 and token.isdigit() and token == str(int(token)):
            place = int(token)
        if not 0 <= place < len(uuids):
            break
        if place not in found:
            found.append(place)
    return found


def _kept(name: str, value: str, count: int, total: int) -> str:
    return f"{name}={value} exposes {count} of {total} GPU{'' if total == 1 else 's'}"
