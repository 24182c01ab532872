"""Write the reference pages that the code already knows: recipe keys, commands, events, reports, rules, schemas.

``python docs/generate.py`` writes them into docs/reference; with ``--check`` nothing is written, and the exit code is 1
when a page is not what the code says.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from axletree.app.rules import RULES
from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.kind import Stage
from axletree.check.document import render_rules
from axletree.cli.main import COMMANDS, cli
from axletree.cli.reporting import report_types
from axletree.core import events
from axletree.core.findings import Finding, LogLine
from axletree.core.globs import EXAMPLES
from axletree.core.records import Metrics
from axletree.host.shipped_data import read_shipped
from axletree.package.sdk.schema import sdk_manifest_schema
from axletree.recipe.schema import event_schema, recipe_schema
from axletree.recipe.settings import OF_THE_USER, PROJECT_FILE, USER_FILE, Settings, variable_of
from axletree.report.envelope import SCHEMA, Envelope
from axletree.report.schema import reports_schema, structs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REFERENCE = Path(__file__).parent / "reference"
PATTERNS = re.compile(r"\b[Ff]ile patterns?\b")
NOTE = "<!-- Written by docs/generate.py. Change the code, then run `make docs`. -->"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """Inline code, or nothing for nothing."""
    return f"`{text}`" if text else ""


# Recipe keys


def type_name(schema: dict[str, Any], table: str | None = None) -> str:
    """A short name for the type of a value; ``table`` is what to call any structure instead of its own name."""
    match schema:
        case {"anyOf": options}:
            return " or ".join(type_name(option, table) for option in options if option.get("type") != "null")
        case {"enum": values}:
            return " or ".join(code(json.dumps(value)) for value in values)
        case {"$ref": reference}:
            return table or str(reference).rpartition("/")[2]
        case {"type": "array", "items": item}:
            return f"list of {type_name(item, table)}"
        case {"type": "object", "additionalProperties": dict(value)}:
            return f"table of {type_name(value, table)}"
        case {"type": name}:
            return str(name)
        case _:
            return "anything"


def default_of(key: str, table_schema: dict[str, Any]) -> str:
    """What holds where a key is not given; empty where that is nothing, or a table with defaults of its own."""
    if key in table_schema["required"]:
        return "**required**"
    value = table_schema["properties"][key].get("default")
    return "" if value in (None, "", [], ()) or isinstance(value, dict) else code(json.dumps(value))


def subtables(path: str, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(header in a recipe, definition) of the tables inside a table."""
    for key, value in schema["properties"].items():
        inner = f"{path}.{key}" if path else key
        for header, part in (
            (f"[{inner}]", value),
            (f"[[{inner}]]", value.get("items", {})),
            (f"[{inner}.NAME]", value.get("additionalProperties", {})),
        ):
            if "$ref" in part:
                yield header, part["$ref"].rpartition("/")[2]


def tables_of(definitions: dict[str, Any], top: str) -> dict[str, list[str]]:
    """Definition -> every header that it appears under, in the order of the model, from the one at the top."""
    found: dict[str, list[str]] = {top: []}
    queue = [("", top)]
    for path, name in queue:  # grows while it is walked
        for header, inner in subtables(path, definitions[name]):
            found.setdefault(inner, []).append(header)
            queue.append((header.strip("[]"), inner))
    return found


def explained(description: str) -> str:
    """What a key means, with a link where it takes file patterns."""
    return PATTERNS.sub(r"[\g<0>](patterns.md)", description)


def patterns_page() -> str:
    """The patterns by which keys select files, by examples."""
    rows = (
        (code(each.pattern), each.meaning, ", ".join(map(code, each.takes)), ", ".join(map(code, each.leaves)))
        for each in EXAMPLES
    )
    parts = [
        "# File patterns",
        NOTE,
        "Keys that select files take patterns, the same in [recipes](recipe.md), [SDK manifests](sdk-manifest.md) and "
        "the rules that [split a wheel](../how-to/split-a-wheel.md). A pattern is compared with the whole path, from "
        "the root of the tree. Unlike in a `.gitignore`, a pattern without a slash matches at the root only: write "
        "`**/*.o` for any folder.",
        table(("pattern", "meaning", "matches", "does not match"), rows),
        "These are errors: a slash at either end, an empty part, `.` or `..`, a backslash, `**` beside other "
        "characters (`lib**`), a `[` without its `]`, and alternatives such as `{a,b}` (write one pattern for each).",
        "Patterns of names, such as SONAMEs, artifacts and variants, know `*`, `?` and `[...]`.",
    ]
    return "\n\n".join(parts) + "\n"


def toml_page(schema: dict[str, Any], top: str, head: list[str]) -> str:
    """Every table and key of a kind of TOML file, behind what its page begins with."""
    definitions = schema["$defs"]
    parts = head
    for name, headers in tables_of(definitions, top).items():
        schema = definitions[name]
        title = "Top level" if name == top else " and ".join(code(header) for header in headers)
        rows = (
            (code(key), type_name(value, "table"), default_of(key, schema), explained(value.get("description", "")))
            for key, value in schema["properties"].items()
        )
        parts += [f"## {title}", schema["description"], table(("key", "type", "default", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


def recipe_page() -> str:
    """Every table and key of a recipe."""
    head = [
        "# Recipe",
        NOTE,
        "A recipe is a TOML file. [Write a recipe](../how-to/write-a-recipe.md) shows one; this page has every key.",
        "An unknown key is an error that names the nearest valid one. Editors can check a recipe while it is written: "
        "[recipe.schema.json](recipe.schema.json) is its JSON schema (`axletree schema` prints it).",
    ]
    return toml_page(recipe_schema(), "Recipe", head)


def settings_page() -> str:
    """Every setting, its variable and its places."""
    definition = msgspec.json.schema_components([Settings])[1]["Settings"]["properties"]
    rows = (
        (
            code(key),
            type_name(schema),
            code(variable_of(key)),
            "you" if key in OF_THE_USER else "you, a project",
            code(json.dumps(schema["default"])) if schema["default"] else "",
            schema["description"],
        )
        for key, schema in definition.items()
    )
    parts = [
        "# Settings",
        NOTE,
        "A setting comes from the first of these places that has it:",
        "1. options of the command, such as `--offline`\n"
        "2. variables, such as `AXLETREE_OFFLINE=1`; lists have spaces between their parts\n"
        f"3. the project's file, `{PROJECT_FILE}` in the working folder or the nearest folder above it that has one\n"
        f"4. your own file, `~/.config/axletree/{USER_FILE}` (or below `XDG_CONFIG_HOME`)",
        "`axletree settings` shows each with its value and its place. Lists from several places are joined. Relative "
        "paths in a file are relative to that file. An unknown key is an error that names the nearest valid one.",
        f'```toml\n# ~/.config/axletree/{USER_FILE}\nstore = "/fast/disk/axletree"\nfind-links = ["~/wheels"]\n```',
        "A project's file is not yours: its author wrote it. So it cannot say where your store is or where packages "
        "come from: such a key is an error there, and `out` must lie inside the project.",
        table(("key", "type", "variable", "who sets it", "default", "meaning"), rows),
        "Indexes and folders that pip and uv are configured to use count too, after these.",
    ]
    return "\n\n".join(parts) + "\n"


def sdk_manifest_page() -> str:
    """Every table and key of an SDK manifest."""
    head = [
        "# SDK manifest",
        NOTE,
        "What the packages of an SDK are, as a TOML file. [Write an SDK manifest](../how-to/write-an-sdk-manifest.md) "
        "shows how one comes to be; this page has every key.",
        "An unknown key is an error that names the nearest valid one. Editors can check a manifest while it is "
        "written: [sdk-manifest.schema.json](sdk-manifest.schema.json) is its JSON schema (`axletree schema "
        "sdk-manifest` prints it).",
    ]
    return toml_page(sdk_manifest_schema(), "Manifest", head)


# Commands


def option_row(option: click.Option) -> tuple[str, str, str]:
    """An option as (spelling, default, meaning)."""
    spelling = " / ".join((*option.opts, *option.secondary_opts))
    if not (option.is_flag or option.count):
        value = "|".join(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else option.type.name
        spelling += f" {option.metavar or value.upper()}"
    shown = option.show_default if isinstance(option.show_default, str) else code(str(option.default))
    default = shown if option.show_default and not option.is_flag else ""
    return code(spelling), "**required**" if option.required else default, option.help or ""


def argument_name(argument: click.Argument) -> str:
    """An argument as it stands in the usage line."""
    if argument.metavar:
        return argument.metavar
    if isinstance(argument.type, click.Choice):
        name = "{" + "|".join(map(str, argument.type.choices)) + "}"
    else:
        name = (argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def command_parts(name: str, command: click.Command, level: int) -> Iterator[str]:
    """Heading, usage, help and options of a command, then of those below it."""
    arguments = [argument_name(each) for each in command.params if isinstance(each, click.Argument)]
    words = [name, "[OPTIONS]", *arguments, *(["COMMAND"] if isinstance(command, click.Group) else [])]
    yield f"{'#' * level} {name}"
    yield f"```text\n{' '.join(words)}\n```"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "")
    options = [option_row(each) for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield table(("option", "default", "meaning"), options)
    if isinstance(command, click.Group):
        for inner, sub in sorted(command.commands.items()):
            yield from command_parts(f"{name} {inner}", sub, level + 1)


def cli_page() -> str:
    """Every command with its options."""
    shared = (each for each in cli.params if isinstance(each, click.Option) and each.name != "version")
    parts = [
        "# Command line",
        NOTE,
        "Exit codes: 0 done; 1 the work was done and the answer is no; 2 bad usage or input; 3 the host lacks a thing. "
        "These options stand before the command: `axletree --quiet build ...`; see [output](output.md).",
        table(("option", "default", "meaning"), map(option_row, shared)),
    ]
    for name, (module, _) in sorted(COMMANDS.items()):
        if importlib.util.find_spec(f"axletree.cli.{module}") is not None:
            command = importlib.import_module(f"axletree.cli.{module}").command
            parts += command_parts(f"axletree {name}", command, 2)
    return "\n\n".join(parts) + "\n"


# Events


def field_docs(structure: type[msgspec.Struct]) -> dict[str, str]:
    """Field -> the docstring below it in the source."""
    (tree,) = ast.parse(inspect.getsource(structure)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(below.value.value.split())
        for field, below in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)
        if isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }


def events_page() -> str:
    """Every event of `axletree build --json`, and the structures inside them."""
    parts = [
        "# Events",
        NOTE,
        "`axletree build --json` prints one JSON object a line; `event` says which. Each has `time`, in seconds since "
        "the epoch. Counted steps and memory of a stage are at most two lines a second each: the latest step, the "
        "largest sample.",
        f"This is version {events.EVENT_SCHEMA} of the schema. Within a version fields may be added, never renamed. "
        "[events.schema.json](events.schema.json) is the JSON schema of a line (`axletree schema events` prints it).",
        "The last line is no event: it is the [report](reports.md#build) of the build, which has `command` and no "
        "`event`. It is there too when the build fails, is cancelled or breaks off, and when there was nothing to do.",
    ]
    shown = (*get_args(events.Event), events.StagePlanned, Metrics, Finding, LogLine)
    _, components = msgspec.json.schema_components(shown)
    for structure in shown:
        docs = field_docs(structure)
        tag = structure.__struct_config__.tag
        rows = (
            (code(field), type_name(schema), docs.get(field, ""))
            for field, schema in components[structure.__name__]["properties"].items()
            if field not in ("event", "time")
        )
        title = code(tag) if isinstance(tag, str) else structure.__name__
        parts += [f"## {title}", inspect.getdoc(structure) or "", table(("field", "type", "meaning"), rows)]
    return "\n\n".join(parts).replace("``", "`") + "\n"


# Reports


def prose(text: str) -> str:
    """A docstring as Markdown: names of Python things lose their role and path."""
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text).replace("``", "`")


def structure_table(name: str, structure: type[msgspec.Struct], definitions: dict[str, Any]) -> str:
    """The fields of a structure, with what stands below them in the source."""
    lineage = [each for each in structure.mro() if issubclass(each, msgspec.Struct) and each.__struct_fields__]
    docs = {field: text for each in reversed(lineage) for field, text in field_docs(each).items()}
    rows = (
        (code(field), type_name(schema), docs.get(field, schema.get("description", "")))
        for field, schema in definitions[name]["properties"].items()
    )
    return table(("field", "type", "meaning"), rows)


def reports_page() -> str:
    """What each command prints with `--json`, and the structures inside."""
    reports = report_types(cli)
    definitions = reports_schema(reports)["$defs"]
    structures = structs_of(reports.values())
    names = {structure: name for name, structure in structures.items()}
    parts = [
        "# Reports",
        NOTE,
        "With `--json` a command prints its report on one line of standard output, and what it says while it works on "
        "standard error. The report is the `result` of an envelope, which is the same for all commands:",
        table(("field", "meaning"), ((code(field), text) for field, text in field_docs(Envelope).items())),
        f"This is version {SCHEMA} of the schema. Within a version fields may be added, never renamed or removed. "
        "[reports.schema.json](reports.schema.json) is the JSON schema of all reports (`axletree schema reports` "
        'prints it, `axletree schema "env create"` that of one command). A command that fails with nothing to report '
        "prints its error on standard error, and no report. `build` and `run-stage` print [events](events.md) before "
        "their report, one a line.",
    ]
    for command, report in reports.items():
        parts += [f"## `{command}`", inspect.getdoc(report) or "", structure_table(names[report], report, definitions)]
    parts.append("## Structures")
    for name, structure in sorted(structures.items()):
        if structure not in reports.values():
            fields = structure_table(name, structure, definitions)
            parts += [f"### {name}", inspect.getdoc(structure) or "", fields]
    return prose("\n\n".join(parts)) + "\n"


def schema_text(schema: dict[str, Any]) -> str:
    """A JSON schema as `axletree schema` prints it."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def failures_page() -> str:
    """What `axletree diagnose` knows, by the stage in which it shows."""
    kinds = read_shipped(FAILURE_KINDS)
    parts = [
        "# Failures",
        NOTE,
        "What `axletree diagnose` finds in logs, by the stage in which it shows. `axletree rules NAME` has the cause "
        "of one, what to do, and the logs in which it is found. A **warning** is a build that goes on without "
        "something. Where no kind fits, generic answers name the file, library, symbol or header, and the most likely "
        "lines are shown.",
    ]
    for stage in get_args(Stage):
        rows = ((code(kind.id), kind.severity, kind.title) for kind in kinds if kind.stage == stage)
        parts += [f"## {stage.capitalize()}", table(("kind", "severity", "what happened"), rows)]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """File name below docs/reference -> content."""
    return {
        "recipe.md": recipe_page(),
        "patterns.md": patterns_page(),
        "recipe.schema.json": schema_text(recipe_schema()),
        "cli.md": cli_page(),
        "events.md": events_page(),
        "events.schema.json": schema_text(event_schema()),
        "reports.md": reports_page(),
        "reports.schema.json": schema_text(reports_schema(report_types(cli))),
        "rules.md": render_rules(RULES),
        "failures.md": failures_page(),
        "settings.md": settings_page(),
        "sdk-manifest.md": sdk_manifest_page(),
        "sdk-manifest.schema.json": schema_text(sdk_manifest_schema()),
    }


def stale() -> list[str]:
    """Names of the pages that are not what the code says."""
    return [
        name
        for name, text in pages().items()
        if not (REFERENCE / name).exists() or (REFERENCE / name).read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Write the pages, or compare them."""
    if "--check" in sys.argv[1:]:
        for name in stale():
            print(f"docs/reference/{name} is not what the code says: run `make docs`")
        return 1 if stale() else 0
    REFERENCE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
