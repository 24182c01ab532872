"""Where pip and uv take packages from, and git's state; without credentials."""

from __future__ import annotations

import configparser
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.check.host.python import Git, Packaging
from axletree.core.errors import AxletreeError
from axletree.core.secrets import looks_secret
from axletree.host.facts.access import Seen, find_tool
from axletree.host.facts.names import host_names
from axletree.host.facts.privacy import without_credentials
from axletree.host.indexes import (
    environment_layers,
    merge_layers,
    parse_pip_config,
    pip_config_files,
    read_indexes,
    redact,
    settings_layers,
)
from axletree.host.settings import load_settings
from axletree.recipe.settings import from_variables, merge

if TYPE_CHECKING:
    from axletree.host.facts.access import Access
    from axletree.host.indexes import IndexSettings


def packaging_facts(access: Access) -> Packaging:
    """What pip and uv are told."""
    seen = Seen()
    files = _files(access)
    seen.put("files", "the places that pip and uv read", tuple(files))
    try:
        settings = _settings(access)
    except AxletreeError as error:
        for field in ("index_url", "extra_index_urls", "find_links"):
            seen.put(field, str(error.problems[0].message), None)
    else:
        source = "Axletree's settings, PIP_* and UV_* variables, pip's and uv's files"
        seen.put("index_url", source, without_credentials(redact(settings.index_url)) if settings.index_url else "none")
        seen.put("extra_index_urls", source, tuple(map(without_credentials, settings.extra_index_urls)))
        seen.put("find_links", source, tuple(map(without_credentials, settings.find_links)))
    seen.put("options", "PIP_* and UV_* variables, pip's files", _options(access, files))
    pip = find_tool(access, "pip")
    seen.put("pip", "PATH" + ("" if pip else ": not found"), pip)
    told = re.search(r"from (.+?)(?:/pip)? \(python (\d+\.\d+)\)", (pip.release if pip else None) or "")
    seen.put("pip_python", "pip --version", told[2] if told else None)
    seen.put("pip_folder", "pip --version", told[1] if told else None)
    uv = find_tool(access, "uv")
    seen.put("uv", "PATH" + ("" if uv else ": not found"), uv)
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    seen.put("proxy", ", ".join(names), any(access.environ.get(name) for name in names))
    return Packaging(**seen.values, sources=seen.sources)


def _prefix(access: Access) -> Path:
    """The prefix whose ``pip.conf`` counts: that of the ``pip`` on PATH."""
    pip = access.which("pip")
    return Path(pip).parent.parent if pip else Path("/usr")


def _files(access: Access) -> list[str]:
    pip = pip_config_files(access.environ, home=Path(access.home), prefix=_prefix(access))
    config = Path(access.environ.get("XDG_CONFIG_HOME") or f"{access.home}/.config")
    named = access.environ.get("UV_CONFIG_FILE")
    uv = [Path("/etc/uv/uv.toml"), config / "uv" / "uv.toml", *([Path(named)] if named else [])]
    return [str(path) for path in dict.fromkeys((*pip, *uv)) if access.is_file(str(path))]


def _settings(access: Access) -> IndexSettings:
    home, cwd, prefix = Path(access.home), Path(access.cwd), _prefix(access)
    if access.root == Path("/"):
        settings = load_settings(access.environ, home=home, cwd=cwd).settings
        return read_indexes(settings, access.environ, home=home, cwd=cwd, prefix=prefix)
    settings = merge([from_variables(access.environ)]).settings
    paths = map(str, pip_config_files(access.environ, home=home, prefix=prefix))
    texts = [(path, text) for path in paths if (text := access.peek(path)) is not None]
    pip, uv = environment_layers(access.environ)
    return merge_layers((*settings_layers(settings), pip, parse_pip_config(texts), uv), home=home, cwd=cwd)


def _options(access: Access, files: list[str]) -> dict[str, str]:
    """Settings by the name that a variable has, or ``pip.conf: NAME`` of a file; variables win, so both are told."""
    found: dict[str, str] = {}
    table = host_names()
    for path in files:
        if not path.endswith(("pip.conf", "pip.ini")) and path != access.environ.get("PIP_CONFIG_FILE"):
            continue
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(access.peek(path) or "")
        except configparser.Error:
            continue
        for section in parser.sections():
            for key, value in parser.items(section):
                if key.replace("_", "-") in table.pip_options:
                    found[f"{os.path.basename(path)}: {section}.{key}"] = without_credentials(value)  # noqa: PTH119
    names = [f"PIP_{name.upper().replace('-', '_')}" for name in table.pip_options]
    names += [f"UV_{name}" for name in table.uv_options]
    found |= {name: without_credentials(access.environ[name]) for name in names if access.environ.get(name)}
    return found


def git_facts(access: Access) -> Git:
    """git, git-lfs and the settings that change what a checkout holds."""
    seen = Seen()
    tool = find_tool(access, "git")
    if tool is None:
        seen.put("path", "PATH", "none")
        seen.rest(Git, "git is not installed")
        return Git(**seen.values, sources=seen.sources)
    seen.put("path", "PATH", tool.path)
    seen.put("version", tool.sources.get("version", ""), tool.version)
    lfs = access.ask(tool.path, "lfs", "version")
    found = re.search(r"git-lfs/(\d+(?:\.\d+)+)", lfs.out)
    seen.put("lfs", "git lfs version", found[1] if found else "none")
    cwd = access.path(access.cwd)
    listed = access.ask(tool.path, "config", "--list", "-z", cwd=cwd if cwd.is_dir() else None)
    if listed.code != 0:
        seen.put("config", f"git config --list: {listed.trouble}", None)
        return Git(**seen.values, sources=seen.sources)
    config: dict[str, str] = {}
    telling = re.compile("|".join(host_names().git_settings))
    for entry in listed.out.split("\0"):
        key, _, value = entry.partition("\n")
        if telling.fullmatch(key.lower()) and not looks_secret(key):
            name = without_credentials(key)
            config[name] = f"{config[name]}, {value}" if key == "safe.directory" and name in config else value
    seen.put("config", "git config --list", {key: without_credentials(value) for key, value in config.items()})
    return Git(**seen.values, sources=seen.sources)
