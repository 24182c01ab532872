"""File names of wheels: the binary distribution format (PEP 427, PEP 491 and their living specification)."""

from __future__ import annotations

import re

import msgspec
from packaging.tags import parse_tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from axletree.core.errors import IntegrityError, Problem

VARIANT_LABEL = re.compile(r"[0-9a-z_.]+")
"""What a variant label is made of (PEP 825)."""


class WheelName(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a wheel's file name."""

    project: str
    """Normalised name of the distribution (PEP 503): ``torch-scatter``."""
    version: str
    """Normalised version (PEP 440), with its local label."""
    python: str
    """Python tag as written, possibly a set: ``cp311``, ``py2.py3``."""
    abi: str
    platform: str
    build: str = ""
    """Build tag: digits, then anything."""
    variant: str = ""
    """Variant label (PEP 825), the last part of the name; empty for a wheel that is none."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Each single tag that the name stands for, sorted."""
        return tuple(sorted(str(tag) for tag in parse_tag(f"{self.python}-{self.abi}-{self.platform}")))


def parse_wheel_name(filename: str) -> WheelName:
    """Take a wheel's file name apart, with its variant label if it has one.

    Raises:
        IntegrityError: it is no wheel name.
    """
    plain, variant = _split_label(filename)
    try:
        project, version, _, _ = parse_wheel_filename(plain)
    except InvalidWheelFilename as error:
        hint = "name it NAME-VERSION(-BUILD)-PYTHON-ABI-PLATFORM(-VARIANT).whl"
        raise IntegrityError(
            Problem(file=filename, message=f"the file name is not valid for a wheel: {error}", hint=hint)
        ) from error
    parts = plain.removesuffix(".whl").split("-")
    python, abi, platform = parts[-3:]
    return WheelName(
        project=project,
        version=str(version),
        build=parts[2] if len(parts) == 6 else "",
        python=python,
        abi=abi,
        platform=platform,
        variant=variant,
    )


def _split_label(filename: str) -> tuple[str, str]:
    """The name without a variant label, and the label.

    A build tag begins with a digit, a Python tag never does; a platform called ``none`` is an ABI tag in its place.
    """
    parts = filename.removesuffix(".whl").split("-")
    labelled = len(parts) == 7 or (len(parts) == 6 and not parts[2][:1].isdigit())
    labelled = labelled and filename.endswith(".whl") and parts[-2] != "none"
    if not labelled or not VARIANT_LABEL.fullmatch(parts[-1]):
        return filename, ""
    return "-".join(parts[:-1]) + ".whl", parts[-1]


def render_wheel_name(name: WheelName) -> str:
    """The file name of a wheel, normalised."""
    parts = [stem(name.project, name.version), name.build, name.python, name.abi, name.platform, name.variant]
    return "-".join(part for part in parts if part) + ".whl"


def stem(project: str, version: str) -> str:
    """How ``NAME-VERSION`` begins file names and names the ``.dist-info`` folder: ``torch_scatter-2.1.2``."""
    return f"{canonicalize_name(project).replace('-', '_')}-{Version(version)}"


def dist_info_folder(project: str, version: str) -> str:
    """Name of the folder that holds a wheel's metadata."""
    return f"{stem(project, version)}.dist-info"
