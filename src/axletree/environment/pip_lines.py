"""Lines of the ``pip:`` section of an ``environment.yml``, which are those of pip's requirements files.

https://pip.pypa.io/en/stable/reference/requirements-file-format/
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from axletree.environment.imported import secret_in

_COMMENT = re.compile(r"(?:^|\s+)#\s*(?P<comment>.*)$")
_HASH = re.compile(r"\s--hash[=\s]\S+")
_OPTION = re.compile(r"(?P<name>--[a-z-]+|-[a-zA-Z])(?:\s*=\s*|\s*)(?P<value>.*)")
_VARIABLE = re.compile(r"\$\{[A-Z0-9_]+\}")
_FILE = ("-r", "--requirement")
_INDEX = "left out; set the index in the settings, as index-url or extra-index-url"
_LINKS = "left out; set it in the settings, as find-links"
_EDITABLE = "left out; install it into the environment with pip, or use `axletree dev`"
_CONSTRAINTS = "left out, because constraints are not supported; write the versions as wheels"
_WHY = {
    "-c": _CONSTRAINTS,
    "--constraint": _CONSTRAINTS,
    "-e": _EDITABLE,
    "--editable": _EDITABLE,
    "-i": _INDEX,
    "--index-url": _INDEX,
    "--extra-index-url": _INDEX,
    "-f": _LINKS,
    "--find-links": _LINKS,
}


class PipLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line says."""

    kind: Literal["wheel", "file", "left", "wrong", "empty"]
    """A requirement; a requirements file; something that is left out; no requirement; nothing."""
    text: str = ""
    """The requirement or the file."""
    why: str = ""
    """Why it, or a part of it, is left out; or what is wrong."""
    comment: str = ""


def read_pip_line(text: str) -> PipLine:
    """What a line of pip's requirements format says."""
    found = _COMMENT.search(text)
    comment = found["comment"] if found else ""
    line = text[: found.start()].strip() if found else text.strip()
    if not line:
        return PipLine(kind="empty", comment=comment)
    if _VARIABLE.search(line):
        return PipLine(kind="left", why="left out, because recipes do not read variables of the shell", comment=comment)
    if secret_in(line):
        return PipLine(kind="left", why="left out, because it contains a login", comment=comment)
    if line.startswith("-"):
        return _option(line, comment)
    bare = _HASH.sub("", line)
    why = "written without digests; `axletree lock` adds them" if bare != line else ""
    read = _requirement(bare)
    return msgspec.structs.replace(read, why=read.why or why, comment=comment)


def _option(line: str, comment: str) -> PipLine:
    found = _OPTION.fullmatch(line)
    name, value = (found["name"], found["value"].strip()) if found else (line, "")
    if name in _FILE and value:
        return PipLine(kind="file", text=value, comment=comment)
    if name in _FILE:
        return PipLine(kind="wrong", why=f"{name} needs the name of a file")
    why = _WHY.get(name, "left out, because recipes have no such option")
    return PipLine(kind="left", why=why, comment=comment)


def _requirement(text: str) -> PipLine:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
    else:
        return PipLine(kind="wheel", text=text)
    name = text.partition("#")[0].rpartition("/")[2]
    if "://" in text.split(maxsplit=1)[0] and name.endswith(".whl"):
        try:
            return PipLine(kind="wheel", text=f"{parse_wheel_filename(name)[0]} @ {text}")
        except InvalidWheelFilename:
            return PipLine(kind="wrong", why=f"{name!r} is not a valid file name of a wheel")
    if "://" in text.split(maxsplit=1)[0]:
        return PipLine(kind="left", why="left out, because it has no name; add it to wheels as NAME @ URL")
    if text.startswith(".") or "/" in text or text.endswith((".whl", ".tar.gz", ".zip")):
        return PipLine(kind="left", why="left out, because it is a path; install it into the environment with pip")
    return PipLine(kind="wrong", why=f"{text!r} is not a valid requirement: {reason}")
