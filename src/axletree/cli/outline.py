"""The names of commands and options as data: what completion needs, without importing the commands.

``docs/generate.py`` writes ``outline.json`` from the commands; a test compares it with them.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import click

Outline = dict[str, Any]
FILE = "outline.json"


def outline_of(command: click.Command) -> Outline:
    """What completion needs of a command and all below it."""
    found: Outline = {"help": command.get_short_help_str(200), "params": [_param(each) for each in command.params]}
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        inner = ((name, command.get_command(ctx, name)) for name in command.list_commands(ctx))
        found["commands"] = {name: outline_of(each) for name, each in inner if each is not None}
    if command.context_settings:
        found["context"] = command.context_settings
    return found


def outlined(name: str) -> click.Command | None:
    """A command as its outline has it: it can be completed, not run."""
    node = json.loads(files(__package__).joinpath(FILE).read_text("utf-8")).get(name)
    return None if node is None else _command(name, node)


def _param(param: click.Parameter) -> Outline:
    found: Outline = {"name": param.name, "opts": [*param.opts, *param.secondary_opts]}
    if param.nargs != 1:
        found["nargs"] = param.nargs
    if isinstance(param.type, click.Choice):
        found["choices"] = [str(choice) for choice in param.type.choices]
    if isinstance(param.type, click.Path | click.File):
        found["path"] = "dir" if isinstance(param.type, click.Path) and not param.type.file_okay else "file"
    if isinstance(param, click.Option):
        found |= {"help": param.help, "option": True}
        found |= {key: True for key in ("is_flag", "multiple", "hidden") if getattr(param, key)}
    return found


def _command(name: str, node: Outline) -> click.Command:
    params = [_completed(each) for each in node["params"]]
    shared: dict[str, Any] = {"help": node["help"], "params": params, "context_settings": node.get("context")}
    if "commands" not in node:
        return click.Command(name, **shared)
    inner = {each: _command(each, below) for each, below in node["commands"].items()}
    return click.Group(name, commands=inner, **shared)


def _completed(node: Outline) -> click.Parameter:
    from axletree.cli.completers import completer_of  # noqa: PLC0415 (both name what click has: no circle on import)

    kind: click.ParamType[Any] | None = None
    if "choices" in node:
        kind = click.Choice(node["choices"])
    elif "path" in node:
        kind = click.Path(file_okay=node["path"] == "file")
    completer = completer_of(node["name"], option=node.get("option", False))
    if "option" not in node:
        return click.Argument(
            node["opts"], type=kind, nargs=node.get("nargs", 1), required=False, shell_complete=completer
        )
    switches = {key: node[key] for key in ("is_flag", "multiple", "hidden") if key in node}
    return click.Option(
        [*node["opts"], node["name"]], type=kind, help=node["help"], shell_complete=completer, **switches
    )
