"""Settings: what a user decides for every command, and which place it comes from when several say it.

The places, the most important first: options of the command, variables, the project's file, the user's own file,
defaults.
:mod:`axletree.host.settings` reads them.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from axletree.core.errors import Problem, UsageError
from axletree.core.trees import is_safe_path
from axletree.recipe.base import Table
from axletree.recipe.faults import Fault
from axletree.recipe.locate import line_of, locate
from axletree.recipe.structure import check_structure
from axletree.recipe.toml import decode_toml, locate_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

USER_FILE = "settings.toml"
"""Name of the user's file, in the folder ``axletree`` of the user's configuration."""
PROJECT_FILE = "axletree.toml"
"""Name of a project's file, in the working folder or the nearest folder above it that has one."""
OF_THE_USER = frozenset({"store", "index-url", "extra-index-url", "find-links", "no-index", "runner", "pass-gpu"})
"""Keys that a project's file may not have: who clones a project does not vouch for it."""
_OF_INDEXES = frozenset({"index-url", "extra-index-url"})
"""Keys that ``no-index`` silences in its own place and in those below it."""
Runner = Literal["namespace", "here", "podman", "docker"]
"""How stages with an image get its files: see the setting."""
_TRUE, _FALSE = frozenset({"1", "true", "yes", "on"}), frozenset({"0", "false", "no", "off"})


class Settings(Table, frozen=True, kw_only=True):
    """Settings for all commands. URLs may contain credentials."""

    store: Annotated[
        str, Meta(description="Folder of the store; by default, `axletree/store` in the user's cache folder.")
    ] = ""
    out: Annotated[
        str,
        Meta(
            description="Output folder of `build` and `ledger`; in a project's settings, a folder inside the project."
        ),
    ] = "dist"
    jobs: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Maximum number of cores that a build uses; by default, all that are available."),
    ] = None
    offline: Annotated[
        bool, Meta(description="Whether to build offline; a missing file is then an error instead of being downloaded.")
    ] = False
    index_url: Annotated[
        str | None, Meta(description="Package index; by default, the index that pip and uv are configured to use.")
    ] = None
    extra_index_url: Annotated[tuple[str, ...], Meta(description="Additional package indexes.")] = ()
    find_links: Annotated[
        tuple[str, ...], Meta(description="Folders and pages with wheels, searched in addition to the indexes.")
    ] = ()
    no_index: Annotated[
        bool, Meta(description="Whether to ignore package indexes, except those set in a place with higher precedence.")
    ] = False

    runner: Annotated[
        Runner,
        Meta(
            description="How stages with an image enter it: in a `namespace` of this machine, in a container of "
            "`podman` or `docker`, or not at all, because the build already runs `here`, inside the image."
        ),
    ] = "namespace"
    pass_gpu: Annotated[bool, Meta(description="Whether tests in images may use the GPUs of this machine.")] = False

    @property
    def gpus_in_images(self) -> bool:
        """Whether tests in images see GPUs: those that are passed on, or those of the job that they are a part of."""
        return self.pass_gpu or self.runner == "here"

    @property
    def addresses(self) -> tuple[str, ...]:
        """What may hold credentials."""
        return (*([self.index_url] if self.index_url else []), *self.extra_index_url, *self.find_links)


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What one place says."""

    values: dict[str, Any] = {}
    """By key, as files write it."""
    origins: dict[str, str] = {}
    """The place of each value, such as ``axletree.toml:3``."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """The settings, each with where its value comes from."""

    settings: Settings
    origins: dict[str, tuple[str, ...]]
    """By key; a list may come from several places."""


KEYS = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
"""Every setting, by its key."""


def variable_of(key: str) -> str:
    """The variable of a setting: ``AXLETREE_INDEX_URL`` for ``index-url``."""
    return f"AXLETREE_{key.upper().replace('-', '_')}"


def from_options(**options: Any) -> Given:
    """What a command line says, by the names of options; ``None``, ``False`` and ``()`` stand for those not given."""
    values = {
        key.replace("_", "-"): str(value) if isinstance(value, PurePath) else value
        for key, value in options.items()
        if value
    }
    return Given(values=values, origins={key: f"--{key}" for key in values})


def from_variables(environ: Mapping[str, str]) -> Given:
    """What variables say. Lists stand between spaces; an empty variable says nothing.

    Raises:
        UsageError: a variable has no value of its setting's type; names all.
    """
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for key in KEYS:
        text = environ.get(variable_of(key), "").strip()
        if text:
            try:
                values[key] = _read(key, text)
            except ValueError as error:
                expected = str(error)
                problems.append(Problem(message=f"{text!r} is not valid: expected {expected}", key=variable_of(key)))
    if problems:
        raise UsageError(*problems)
    return Given(values=values, origins={key: variable_of(key) for key in values})


def from_file(text: str, *, filename: str, project: bool) -> Given:
    """What a settings file says.

    Args:
        text: its content.
        filename: its name in messages and origins.
        project: whether it is a project's, not the user's own.

    Raises:
        RecipeError: it is no TOML.
        UsageError: an unknown key, a value of a wrong type, or a key that a project may not set; names all, with lines.
    """
    data = decode_toml(text, filename)
    faults, values = check_structure(data, Settings)
    empty = [key for key, value in data.items() if key in KEYS and value == ""]
    faults += [
        Fault(path=(key,), message="the value is empty", hint="remove the key to use the default") for key in empty
    ]
    if project:
        faults += _foreign(data)
    if faults:
        raise UsageError(*locate_faults(faults, text, filename))
    lines = locate(text)
    return Given(values=values, origins={key: f"{filename}:{line_of(lines, (key,))}" for key in values})


def merge(places: Iterable[Given]) -> Loaded:
    """The settings from all places, the most important first. Lists are put together, in this order."""
    values: dict[str, Any] = {}
    origins: dict[str, tuple[str, ...]] = {}
    for place in places:
        if "no-index" in place.values:
            values.setdefault("no-index", place.values["no-index"])
        for key, value in place.values.items():
            if key in _OF_INDEXES and values.get("no-index"):
                continue
            if isinstance(KEYS[key].default, tuple):
                values[key] = (*values.get(key, ()), *value)
                origins[key] = (*origins.get(key, ()), place.origins[key])
            else:
                values.setdefault(key, value)
                origins.setdefault(key, (place.origins[key],))
    return Loaded(
        settings=msgspec.convert(values, Settings), origins={key: origins.get(key, ("default",)) for key in KEYS}
    )


def _read(key: str, text: str) -> Any:
    """The value that a text means. Raises ``ValueError`` that says what it should be."""
    default = KEYS[key].default
    if isinstance(default, tuple):
        return tuple(text.split())
    if isinstance(default, bool):
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError("1 or 0")
        return text.lower() in _TRUE
    if key == "runner" and text not in get_args(Runner):
        raise ValueError(f"a runner: use {', '.join(get_args(Runner)[:-1])} or {get_args(Runner)[-1]}")
    if key == "jobs":
        if not (text.isascii() and text.isdecimal() and int(text) > 0):
            raise ValueError("a whole number of 1 or more")
        return int(text)
    return text


def _foreign(data: Mapping[str, Any]) -> Iterator[Fault]:
    """What a project's file says and may not."""
    for key in OF_THE_USER & data.keys():
        message = "this setting cannot be in a project's settings file, which someone else may have written"
        yield Fault(path=(key,), message=message, hint=f"set it in your own {USER_FILE}, or {variable_of(key)}")
    out = data.get("out")
    if isinstance(out, str) and (not is_safe_path(out) or out.partition("/")[0] == "~"):
        yield Fault(
            path=("out",), message=f"{out!r} is not a folder inside the project", hint='use a folder such as "dist"'
        )
