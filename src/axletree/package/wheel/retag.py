"""Other tags, another build tag or another local version for a wheel: its new name, WHEEL and METADATA as values."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from axletree.core.errors import IntegrityError, Problem, UsageError
from axletree.package.wheel.metadata import with_version
from axletree.package.wheel.names import WheelName

if TYPE_CHECKING:
    from axletree.package.wheel.info import WheelInfo
    from axletree.package.wheel.metadata import Metadata

_TAG = re.compile(r"[a-z0-9_]+")
_BUILD = re.compile(r"[0-9][A-Za-z0-9_.]*")


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What shall be other than it is; ``None`` leaves it."""

    python: str | None = None
    """Tags separated by dots, which replace those there are; with ``+`` before them they are added, with ``-`` removed.
    ``=`` means the same as nothing."""
    abi: str | None = None
    platform: str | None = None
    build: str | None = None
    """Build tag; empty for none."""
    local: str | None = None
    """Local label of the version, without its ``+``; empty for none."""


def change_name(name: WheelName, wishes: Wishes) -> WheelName:
    """The parts of the new file name.

    Raises:
        UsageError: a wish is no tag, no build tag or no local label, or leaves no tag; names all of them.
    """
    problems: list[Problem] = []
    changed = {
        field: _change_tags(getattr(name, field), getattr(wishes, field), field, problems)
        for field in ("python", "abi", "platform")
    }
    if wishes.build and not _BUILD.fullmatch(wishes.build):
        message = f"{wishes.build!r} is not a valid build tag"
        problems.append(
            Problem(
                key="--build",
                message=message,
                hint="use a build tag that starts with a digit and contains no dash, such as 1 or 2local",
            )
        )
    version = _change_local(name.version, wishes.local, problems)
    if problems:
        raise UsageError(*problems)
    build = name.build if wishes.build is None else wishes.build
    return msgspec.structs.replace(name, build=build, version=version, **changed)


def change_info(info: WheelInfo, old: WheelName, new: WheelName) -> WheelInfo:
    """The WHEEL file for a new name. Its tags stay as they are written where they mean the same."""
    if (old.python, old.abi, old.platform) != (new.python, new.abi, new.platform):
        parts = (part.split(".") for part in (new.python, new.abi, new.platform))
        info = msgspec.structs.replace(info, tags=tuple("-".join(tag) for tag in itertools.product(*parts)))
    return msgspec.structs.replace(info, build=new.build)


def change_metadata(metadata: Metadata, old: WheelName, new: WheelName) -> Metadata:
    """The METADATA file for a new name."""
    return metadata if old.version == new.version else with_version(metadata, new.version)


def name_of(metadata: Metadata, info: WheelInfo, *, file: str) -> WheelName:
    """The file name that METADATA and WHEEL ask for.

    Raises:
        IntegrityError: WHEEL has what is no tag, or no build tag.
    """
    problems: list[Problem] = []
    columns: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    for tag in info.tags:
        parts = tag.lower().split("-")
        if len(parts) != 3 or not all(_TAG.fullmatch(part) for column in parts for part in column.split(".")):
            hint = "use PYTHON-ABI-PLATFORM, such as cp311-cp311-linux_x86_64"
            problems.append(Problem(file=file, key="Tag", message=f"{tag!r} is not a valid tag", hint=hint))
            continue
        for column, part in zip(columns, parts, strict=True):
            column.update(part.split("."))
    if info.build and not _BUILD.fullmatch(info.build):
        problems.append(Problem(file=file, key="Build", message=f"{info.build!r} is not a valid build tag"))
    if problems:
        raise IntegrityError(*problems)
    python, abi, platform = (".".join(sorted(column)) for column in columns)
    return WheelName(
        project=canonicalize_name(metadata.name),
        version=str(Version(metadata.version)),
        python=python,
        abi=abi,
        platform=platform,
        build=info.build,
    )


def _change_tags(old: str, wish: str | None, field: str, problems: list[Problem]) -> str:
    if wish is None:
        return old
    sign, text = (wish[0], wish[1:]) if wish[:1] in {"+", "-", "="} else ("=", wish)
    tags = text.lower().split(".")
    if bad := [tag for tag in tags if not _TAG.fullmatch(tag)]:
        hint = "use letters, digits and '_', separated by dots: cp311.cp312"
        problems.append(Problem(key=f"--{field}", message=f"{bad[0]!r} (in {wish!r}) is not a valid tag", hint=hint))
        return old
    present = old.split(".")
    if sign == "-":
        if missing := [tag for tag in tags if tag not in present]:
            message = f"cannot remove {missing[0]}: the existing tags are {', '.join(present)}"
            problems.append(Problem(key=f"--{field}", message=message))
        elif set(present) <= set(tags):
            problems.append(Problem(key=f"--{field}", message=f"removing {text} would leave no tags"))
        return ".".join(tag for tag in present if tag not in tags)
    return ".".join(sorted({*present, *tags} if sign == "+" else set(tags)))


def _change_local(version: str, label: str | None, problems: list[Problem]) -> str:
    if label is None:
        return version
    public = Version(version).public
    try:
        return str(Version(f"{public}+{label}" if label else public))
    except InvalidVersion:
        hint = "use letters and digits separated by dots: cu130, torch.2.14.cpu"
        problems.append(Problem(key="--local", message=f"{label!r} is not a valid local version label", hint=hint))
        return version
