"""An environment for other tools: ``environment.yml`` (conda, mamba) and ``pixi.toml`` (pixi)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from packaging.requirements import InvalidRequirement, Requirement

from axletree.recipe.match_spec import parse_match_spec, with_python

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.environment.delta import Delta
    from axletree.environment.description import Description, InstalledPackage

Format = Literal["environment.yml", "pixi.toml"]
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "y", "n", "on", "off", "null"})
"""What YAML 1.1 takes for something else than a text."""
FORMATS: tuple[Format, ...] = ("environment.yml", "pixi.toml")


def exported(description: Description, form: Format, *, platform: str, locked: bool = True) -> str:
    """The text of a file that makes the same environment.

    Args:
        description: the environment.
        form: which file.
        platform: conda's name of this machine, ``linux-64``.
        locked: the very versions that are installed; else what the recipe requires.
    """
    lines = _environment_yml(description, locked=locked) if form == "environment.yml" else None
    if lines is None:
        lines = _pixi_toml(description, platform=platform, locked=locked)
    return "\n".join([*lines, ""])


def _head(description: Description) -> Iterator[str]:
    yield f"# Environment {description.name} of {description.recipe}, variant {description.variant}."
    paths = [delta for delta in description.deltas if delta.operation in {"prepend", "append"}]
    if paths:
        yield "# This leaves out its search orders; activate it with Axletree to get them: axletree env activate"


def _variables(description: Description) -> dict[str, str]:
    """What does not name a place in the environment's own folder: its activation sets that anyway."""
    kept: dict[str, str] = {}
    for delta in description.deltas:
        if delta.operation == "set" and not _is_local(delta, description):
            kept[delta.variable] = delta.value
    return kept


def _is_local(delta: Delta, description: Description) -> bool:
    own = delta.variable.startswith(("CONDA_", "VIRTUAL_ENV"))
    return own or description.folder in delta.value or ".sh" in delta.origin


def _environment_yml(description: Description, *, locked: bool) -> Iterator[str]:
    yield from _head(description)
    yield f"name: {_word(f'{description.name}-{description.variant}')}"
    yield "channels:"
    for channel in _channels(description):
        yield f"  - {_word(channel)}"
    if description.provider == "conda":
        yield "dependencies:"
        for spec in _conda_specs(description, locked=locked):
            yield f"  - {_word(spec)}"
    else:
        yield "dependencies:"
        yield f"  - {_word(_python_spec(description))}"
    wheels = list(_wheel_specs(description, locked=locked))
    if wheels:
        yield "  - pip"
        yield "  - pip:"
        yield from (f"    - {_word(spec)}" for spec in wheels)
    if variables := _variables(description):
        yield "variables:"
        for name, value in variables.items():
            yield f"  {_word(name)}: {json.dumps(value)}"


def _channels(description: Description) -> tuple[str, ...]:
    return description.channels or ("conda-forge",)


def _conda_specs(description: Description, *, locked: bool) -> Iterator[str]:
    if locked:
        yield from (f"{each.name}={each.version}={each.build}" for each in description.packages if each.build)
    else:
        yield from with_python(description.requires, description.python)


def _wheel_specs(description: Description, *, locked: bool) -> Iterator[str]:
    """Requirements of wheels; of a conda environment, those of its pip half."""
    if locked:
        yield from (f"{each.name}=={each.version}" for each in description.packages if not each.build)
    else:
        yield from description.wheels if description.provider == "conda" else description.requires


def _python_spec(description: Description) -> str:
    if description.python.endswith("t"):
        return f"python-freethreading={description.python[:-1]}"
    return f"python={description.python}"


def _pixi_toml(description: Description, *, platform: str, locked: bool) -> Iterator[str]:
    yield from _head(description)
    yield "[workspace]"
    yield f"name = {_text(f'{description.name}-{description.variant}')}"
    channels = ", ".join(_text(channel) for channel in _channels(description))
    yield f"channels = [{channels}]"
    yield f"platforms = [{_text(platform)}]"
    yield ""
    yield "[dependencies]"
    if description.provider == "conda":
        yield from (
            (_pixi_conda(each) for each in description.packages if each.build)
            if locked
            else map(_pixi_spec, with_python(description.requires, description.python))
        )
    else:
        name, _, version = _python_spec(description).partition("=")
        yield f"{name} = {_text(f'{version}.*')}"
    wheels = [_pixi_wheel(spec) for spec in _wheel_specs(description, locked=locked)]
    if wheels:
        yield ""
        yield "[pypi-dependencies]"
        yield from wheels
    if variables := _variables(description):
        yield ""
        yield "[activation.env]"
        yield from (f"{name} = {_text(value)}" for name, value in variables.items() if value)  # none may be empty


def _pixi_conda(package: InstalledPackage) -> str:
    return f"{_key(package.name)} = {_table({'version': f'=={package.version}', 'build': package.build})}"


def _pixi_spec(text: str) -> str:
    """A match spec as a line of ``[dependencies]``: https://pixi.sh/latest/reference/pixi_manifest/ and its schema."""
    spec = parse_match_spec(text)
    if spec is None:
        return f"# not listed, as it has no name and version: {_text(text)}"
    fields = {"version": spec.version, "build": spec.build, "channel": spec.channel}
    fields |= {name.replace("_", "-"): value for name, value in spec.more.items()}
    return f"{_key(spec.name)} = {_table({name: value for name, value in fields.items() if value is not None})}"


def _table(fields: Mapping[str, str]) -> str:
    """An inline table, or the version alone where there is nothing else."""
    if fields.keys() == {"version"}:
        return _text(fields["version"])
    return f"{{ {', '.join(f'{_key(name)} = {_text(value)}' for name, value in fields.items())} }}"


def _pixi_wheel(spec: str) -> str:
    """A requirement as a line of ``[pypi-dependencies]``; those have no markers, so one is told beside it."""
    try:
        requirement = Requirement(spec)
    except InvalidRequirement:  # a lock's own name and version: never
        return f"# {spec}"
    only = f"  # only where {requirement.marker}" if requirement.marker else ""
    where = {"url": requirement.url} if requirement.url else {"version": str(requirement.specifier) or "*"}
    if not requirement.extras:
        return f"{_key(requirement.name)} = {_table(where)}{only}"
    (key, value), *_ = where.items()
    extras = ", ".join(_text(extra) for extra in sorted(requirement.extras))
    return f"{_key(requirement.name)} = {{ {key} = {_text(value)}, extras = [{extras}] }}{only}"


def _key(name: str) -> str:
    plain = name.replace("-", "").replace("_", "")
    return name if plain.isascii() and plain.isalnum() else _text(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _word(text: str) -> str:
    """A scalar of YAML: plain where nothing in it means something."""
    plain = text and all(char.isalnum() or char in "-_.=/+<>~" for char in text) and text[0].isalpha()
    return text if plain and text.lower() not in _YAML_WORDS else _text(text)
