"""Takes out of facts what is nobody's business: credentials, the user's name, the machine's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S", bound=msgspec.Struct)
HIDDEN = "****"
_CREDENTIALS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/\s@?#]*+@")
_QUERY = re.compile(r"([?&](?=[\w-]*?(?:token|key|secret|password|signature|sig|auth))[\w-]*+=)[^&\s#]+", re.IGNORECASE)
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{15,}|hf_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|"
    r"sk-[\w-]{20,}|xox[abpr]-[\w-]{10,}|AKIA[A-Z0-9]{16}|eyJ[\w-]{10,2000}\.[\w-]{10,}\.[\w-]*)"
)
_COMMON = re.compile(
    r"root|users?|admin|conda|cuda|rocm|python|ubuntu|debian|fedora|linux|builder|build|git|bin|lib|dev|test|ml|gpu|"
    r"local|localhost|server|desktop|laptop|workstation|host|none|runner"
)
"""Names of users and machines that are words of facts as well: they are taken out below /home alone."""


def without_credentials(text: str) -> str:
    """A text whose addresses have no user, password or token, and that holds none of the well-known tokens."""
    text = _CREDENTIALS.sub(rf"\1{HIDDEN}@", text)
    text = _QUERY.sub(rf"\1{HIDDEN}", text)
    return _TOKENS.sub(HIDDEN, text)


def scrubber(*, home: str, user: str | None, machine: str | None) -> Callable[[str], str]:
    """A function that takes the home folder, the user's and the machine's name out of a text.

    Args:
        home: becomes ``~``; one that is ``/`` stays.
        user: becomes ``<user>`` as a word.
        machine: becomes ``<host>`` as a word.
    """
    steps: list[tuple[re.Pattern[str], str]] = []
    home = home.rstrip("/")
    if home:
        steps.append((re.compile(rf"(?<![\w.~/-]){re.escape(home)}(?![\w.-])"), "~"))
        steps.append((re.compile(rf"(?<=-[ILF]){re.escape(home)}(?![\w.-])"), "~"))
    for name, stands in ((user, "<user>"), (machine, "<host>")):
        if not name:
            continue
        word = re.escape(name)
        if _COMMON.fullmatch(name.lower()) or len(name) < 3:
            steps.append((re.compile(rf"(?<=/home/){word}(?![\w.-])|(?<=/Users/){word}(?![\w.-])"), stands))
        else:
            steps.append((re.compile(rf"(?<![\w.-]){word}(?![\w-]|\.\w)"), stands))

    def scrub(text: str) -> str:
        for pattern, stands in steps:
            text = pattern.sub(stands, text)
        return without_credentials(text)

    return scrub


def scrubbed(value: S, scrub: Callable[[str], str]) -> S:
    """A value with every text in it scrubbed, keys of maps too."""
    return msgspec.convert(_walk(msgspec.to_builtins(value), scrub), type(value))


def _walk(value: object, scrub: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, dict):
        return {scrub(key): _walk(each, scrub) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_walk(each, scrub) for each in value]
    return value
