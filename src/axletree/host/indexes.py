"""Which package indexes and folders the user's own configuration names: pip's, uv's and Axletree's.

uv does not read pip's configuration, and a private mirror or a folder of wheels is most often set up there. So both
are read here, once, into one value that every download and every resolution uses. Order, the first that says something
wins for the index, and goes first in the lists: Axletree's settings, ``PIP_*``, pip's configuration files, ``UV_*``,
and at last uv's own default, which is asked for only where nothing else named an index.
"""

from __future__ import annotations

import configparser
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import msgspec

from axletree.core.errors import HostError, Problem
from axletree.host.run import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from axletree.recipe.settings import Settings


class IndexSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where packages come from. May hold credentials: show it through :func:`redact` only."""

    index_url: str | None
    """The index (PEP 503), without a slash at its end; ``None`` where the user wants no index at all."""
    extra_index_urls: tuple[str, ...] = ()
    """Further indexes, as good as the first."""
    find_links: tuple[str, ...] = ()
    """Folders (absolute paths) and pages (addresses) that list files."""


def on_this_machine(settings: IndexSettings) -> IndexSettings:
    """The same places, less those of a network."""
    indexes = [settings.index_url, *settings.extra_index_urls]
    here = [index for index in indexes if index is not None and local_path(index) is not None]
    return IndexSettings(
        index_url=None,
        extra_index_urls=tuple(here),
        find_links=tuple(place for place in settings.find_links if local_path(place) is not None),
    )


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """What one place of configuration says; ``None`` and ``()`` where it is silent."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False


_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})
_PIP_SECTIONS = ("global", "install")
_UV_SECONDS = 60


def redact(url: str) -> str:
    """An address without its user name and password, fit for messages and reports."""
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc=f"****@{parts.netloc.rpartition('@')[2]}"))


def local_path(location: str) -> Path | None:
    """The path that a location means, or ``None`` where it is an address on a network."""
    if location.startswith("file:"):
        return Path(unquote(urlsplit(location).path))
    return None if _SCHEME.match(location) else Path(location)


def file_url(path: Path) -> str:
    """The ``file://`` address of an absolute path."""
    return urlunsplit(SplitResult("file", "", quote(str(path)), "", ""))


def pip_config_files(environ: Mapping[str, str], *, home: Path, prefix: Path) -> tuple[Path, ...]:
    """Pip's configuration files on Linux, in the order in which it reads them: a later one overrides.

    See "Configuration" in pip's user guide: global (``XDG_CONFIG_DIRS``, ``/etc``), user, virtual environment,
    ``PIP_CONFIG_FILE``. The null device as ``PIP_CONFIG_FILE`` switches all of them off.
    """
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ()
    shared = [Path(folder) for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if folder]
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [folder / "pip" / "pip.conf" for folder in shared]
    files.append(Path("/etc/pip.conf"))
    if not named:
        files += [home / ".pip" / "pip.conf", user / "pip" / "pip.conf"]
    files.append(Path(environ.get("VIRTUAL_ENV") or prefix) / "pip.conf")
    if named:
        files.append(Path(named))
    return tuple(files)


def parse_pip_config(texts: Iterable[tuple[str, str]]) -> Layer:
    """What pip configuration files say together, given as (file name, text) in the order of reading.

    Raises:
        HostError: a file that is no INI file, named with its line.
    """
    values: dict[str, str] = {}
    problems = []
    sections: dict[str, dict[str, str]] = {name: {} for name in _PIP_SECTIONS}
    for name, text in texts:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text, source=name)
        except configparser.Error as error:
            message = f"the file is not a valid pip configuration file: {str(error).splitlines()[0]}"
            problems.append(
                Problem(
                    message=message,
                    file=name,
                    hint="run `pip config debug` to list the files that pip reads, and correct this one",
                )
            )
            continue
        for section in _PIP_SECTIONS:
            if parser.has_section(section):
                sections[section] |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    if problems:
        raise HostError(*problems)
    for section in _PIP_SECTIONS:
        values |= sections[section]
    return Layer(
        index_url=values.get("index-url") or None,
        extra_index_urls=_words(values.get("extra-index-url")),
        find_links=_words(values.get("find-links")),
        no_index=(values.get("no-index") or "").lower() in _TRUE,
    )


def settings_layers(settings: Settings) -> tuple[Layer, Layer]:
    """What Axletree's settings say: indexes, and whether those of other configurations count."""
    own = Layer(index_url=settings.index_url, extra_index_urls=settings.extra_index_url, find_links=settings.find_links)
    return own, Layer(no_index=settings.no_index)


def environment_layers(environ: Mapping[str, str]) -> tuple[Layer, Layer]:
    """What ``PIP_*`` and ``UV_*`` variables say, in this order."""
    pip = Layer(
        index_url=environ.get("PIP_INDEX_URL") or None,
        extra_index_urls=_words(environ.get("PIP_EXTRA_INDEX_URL")),
        find_links=_words(environ.get("PIP_FIND_LINKS")),
        no_index=(environ.get("PIP_NO_INDEX") or "").lower() in _TRUE,
    )
    named = tuple(entry.partition("=")[2] or entry for entry in _words(environ.get("UV_INDEX")))
    uv = Layer(
        index_url=environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL") or None,
        extra_index_urls=named + _words(environ.get("UV_EXTRA_INDEX_URL")),
        find_links=_words((environ.get("UV_FIND_LINKS") or "").replace(",", " ")),
        no_index=(environ.get("UV_NO_INDEX") or "").lower() in _TRUE,
    )
    return pip, uv


def merge_layers(
    layers: Iterable[Layer], *, home: Path, cwd: Path, default: Callable[[], Layer] = Layer
) -> IndexSettings:
    """One value from what each place says, the most important place first.

    ``default`` is called only where no layer names an index and none forbids one. A layer that forbids indexes
    silences all below it, as pip's ``no-index`` does; what comes above it still counts.
    """
    index: str | None = None
    extra: list[str] = []
    links: list[str] = []
    forbidden = False
    for layer in layers:
        links += layer.find_links
        if forbidden or layer.no_index:
            forbidden = True
            continue
        index = index or layer.index_url
        extra += layer.extra_index_urls
    if index is None and not forbidden:
        last = default()
        index = last.index_url
        extra += last.extra_index_urls
        links += last.find_links
    indexes = list(dict.fromkeys(index_address(url, home=home, cwd=cwd) for url in ([index] if index else []) + extra))
    return IndexSettings(
        index_url=indexes[0] if index else None,
        extra_index_urls=tuple(indexes[1:] if index else indexes),
        find_links=tuple(dict.fromkeys(location(link, home=home, cwd=cwd) for link in links)),
    )


def parse_emitted(text: str) -> Layer:
    """What ``uv pip compile --emit-index-url --emit-find-links`` wrote, as a layer."""
    found: dict[str, list[str]] = {"--index-url": [], "--extra-index-url": [], "--find-links": []}
    for line in text.splitlines():
        option, _, value = line.strip().partition(" ")
        if option in found and value:
            found[option].append(value.strip())
    return Layer(
        index_url=next(iter(found["--index-url"]), None),
        extra_index_urls=tuple(found["--extra-index-url"]),
        find_links=tuple(found["--find-links"]),
    )


def read_indexes(
    settings: Settings, environ: Mapping[str, str], *, home: Path, cwd: Path, prefix: Path | None = None
) -> IndexSettings:
    """The user's package indexes on this machine.

    Args:
        settings: Axletree's own.
        environ: environment variables.
        home: the user's home folder.
        cwd: what relative locations are relative to.
        prefix: of the virtual environment whose ``pip.conf`` counts; default is that of this interpreter.

    Raises:
        HostError: a configuration file cannot be read or parsed, or uv does not start.
    """
    texts = []
    for path in pip_config_files(environ, home=home, prefix=prefix or Path(sys.prefix)):
        try:
            texts.append((str(path), path.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            message = f"cannot read this pip configuration file: {error}"
            raise HostError(Problem(message=message, file=str(path))) from error
    pip, uv = environment_layers(environ)
    layers = (*settings_layers(settings), _below(pip, parse_pip_config(texts)), uv)
    return merge_layers(layers, home=home, cwd=cwd, default=lambda: _ask_uv(environ, cwd=cwd))


def uv_program() -> str:
    """Path of the uv that Axletree depends on.

    Raises:
        HostError: it is not installed.
    """
    try:
        import uv  # noqa: PLC0415 (only where it is used: start-up time)

        return uv.find_uv_bin()
    except (ImportError, FileNotFoundError) as error:
        raise HostError(f"uv is not installed: {error}", hint="reinstall Axletree, or run `pip install uv`") from error


def _below(variables: Layer, files: Layer) -> Layer:
    """Pip's environment variables over its files, option by option, as pip itself does."""
    return Layer(
        index_url=variables.index_url or files.index_url,
        extra_index_urls=variables.extra_index_urls or files.extra_index_urls,
        find_links=variables.find_links or files.find_links,
        no_index=variables.no_index or files.no_index,
    )


def _ask_uv(environ: Mapping[str, str], *, cwd: Path) -> Layer:
    command = [uv_program(), "pip", "compile", "-", "--emit-index-url", "--emit-find-links", "--offline", "--no-header"]
    what, hint = "querying uv for its package index", "set AXLETREE_INDEX_URL"
    return parse_emitted(run(command, what=what, environ=environ, cwd=cwd, seconds=_UV_SECONDS, hint=hint))


def _words(value: str | None) -> tuple[str, ...]:
    return tuple((value or "").split())


def absolute_path(text: str, *, home: Path, cwd: Path) -> str:
    """A path as people write it, ``~/wheels`` or ``../wheels``, from the root."""
    return os.path.normpath(home / text[2:] if text == "~" or text.startswith("~/") else cwd / text)


def location(text: str, *, home: Path, cwd: Path) -> str:
    """A folder or page: absolute path, or address."""
    path = local_path(text)
    return text if path is None else absolute_path(str(path), home=home, cwd=cwd)


def index_address(text: str, *, home: Path, cwd: Path) -> str:
    """An index: address without a slash at its end; ``file://`` for folders."""
    if local_path(text) is None:
        return text.rstrip("/")
    return file_url(Path(location(text, home=home, cwd=cwd)))
