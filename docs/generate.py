"""Write the reference pages from the code: recipe keys, commands, events, reports, rules, schemas.

``python docs/generate.py`` writes them to docs/reference. With ``--check`` it writes nothing and exits with 1 if a page
differs from the code.
"""

from __future__ import annotations

import ast
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
from axletree.cli.main import COMMANDS, cli, load
from axletree.cli.outline import outline_of
from axletree.cli.reporting import report_types
from axletree.core import events
from axletree.core.findings import Finding, LogLine
from axletree.core.globs import EXAMPLES
from axletree.core.records import Metrics
from axletree.host.shipped_data import read_shipped
from axletree.package.sdk.schema import sdk_manifest_schema
from axletree.recipe.schema import FILLED_IN, FROM_BASE, event_schema, recipe_schema
from axletree.recipe.settings import OF_THE_USER, PROJECT_FILE, USER_FILE, Settings, variable_of
from axletree.report.envelope import SCHEMA, Envelope
from axletree.report.schema import reports_schema, structs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REFERENCE = Path(__file__).parent / "reference"
PATTERNS = re.compile(r"\b[Ff]ile patterns?\b")
COMMAND_GROUPS = {
    "Recipes": ("init", "check", "lock", "matrix", "recipes", "schema"),
    "Builds": ("wheel", "plan", "build", "ledger", "shell", "run-stage", "image", "store"),
    "Finished wheels": ("audit", "sizes", "repair", "split", "thin", "unpack", "pack", "retag", "edit-elf"),
    "Hosts, environments and logs": ("doctor", "facts", "env", "diagnose", "rules"),
    "Source trees": ("source", "dev", "rebuild", "cmake-cache", "clean", "drift"),
    "SDKs": ("sdk",),
    "Configuration": ("settings", "completion"),
}
"""Heading of the index -> commands; those of no group are listed under "More"."""
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
    if key in table_schema["required"] or key in FROM_BASE.get(table_schema.get("title", ""), ()):
        return "**required**"
    if key in FILLED_IN.get(table_schema.get("title", ""), ()):
        return "**required**, or [from the project](../how-to/write-a-recipe.md#defaults)"
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
        "[Recipes](recipe.md), [SDK manifests](sdk-manifest.md) and the rules that "
        "[split a wheel](../how-to/split-a-wheel.md) select files with the same patterns. A pattern must match the "
        "whole path, starting at the root of the tree. Unlike in a `.gitignore`, a pattern without a slash matches "
        "only at the root: use `**/*.o` to match in any folder.",
        table(("pattern", "meaning", "matches", "does not match"), rows),
        "These are errors: a leading or trailing slash, an empty component, `.` or `..`, a backslash, `**` next to "
        "other characters (`lib**`), an unclosed `[`, and alternatives such as `{a,b}` (use one pattern for each).",
        "Patterns for names, such as SONAMEs, artifacts and variants, support `*`, `?` and `[...]`.",
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
        "A recipe is a TOML file. [Write a recipe](../how-to/write-a-recipe.md) introduces it. This page lists all its "
        "keys.",
        "An unknown key is an error that suggests the nearest valid key. Editors can check a recipe as you type with "
        "the JSON schema, [recipe.schema.json](recipe.schema.json) (`axletree schema` prints it).",
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
            "you" if key in OF_THE_USER else "you or a project",
            code(json.dumps(schema["default"])) if schema["default"] else "",
            schema["description"],
        )
        for key, schema in definition.items()
    )
    parts = [
        "# Settings",
        NOTE,
        "Axletree takes a setting from the first of these places that defines it:",
        "1. a command-line option, such as `--offline`\n"
        "2. an environment variable, such as `AXLETREE_OFFLINE=1`; separate the items of a list with spaces\n"
        f"3. the project's file, `{PROJECT_FILE}`, in the current folder or the nearest parent folder that has one\n"
        f"4. your own file, `~/.config/axletree/{USER_FILE}` (or in `XDG_CONFIG_HOME`)",
        "`axletree settings` shows the value of each setting and where it comes from. Lists from several places are "
        "combined. Relative paths in a file are relative to that file. An unknown key is an error that suggests the "
        "nearest valid key.",
        f'```toml\n# ~/.config/axletree/{USER_FILE}\nstore = "/fast/disk/axletree"\nfind-links = ["~/wheels"]\n```',
        "Because the author of a project writes its file, that file cannot set the location of your store or where "
        "packages come from: such a key is an error there. `out` must be inside the project.",
        table(("key", "type", "variable", "who sets it", "default", "meaning"), rows),
        "Axletree also uses the indexes and folders that pip and uv are configured with, after these.",
    ]
    return "\n\n".join(parts) + "\n"


def sdk_manifest_page() -> str:
    """Every table and key of an SDK manifest."""
    head = [
        "# SDK manifest",
        NOTE,
        "A manifest is a TOML file that defines the packages of an SDK. "
        "[Write an SDK manifest](../how-to/write-an-sdk-manifest.md) walks through one; this page lists every key.",
        "An unknown key is an error that suggests the nearest valid key. Editors can check a manifest as you type with "
        "the JSON schema, [sdk-manifest.schema.json](sdk-manifest.schema.json) (`axletree schema sdk-manifest` prints "
        "it).",
    ]
    return toml_page(sdk_manifest_schema(), "Manifest", head)


# Commands


def option_row(option: click.Option) -> tuple[str, str, str]:
    """An option as (spelling, default, meaning)."""
    spelling = " / ".join((*option.opts, *option.secondary_opts))
    if not (option.is_flag or option.count):
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        values = f"{{{','.join(map(str, choices))}}}" if choices else option.type.name.upper()
        spelling += f" {option.metavar or values}"
    shown = option.show_default if isinstance(option.show_default, str) else code(str(option.default))
    default = shown if option.show_default and not option.is_flag else ""
    return code(spelling), "**required**" if option.required else default, option.help or ""


def options_table(rows: list[tuple[str, str, str]]) -> str:
    """The options of a command; without the column of defaults if none has one."""
    if any(default for _, default, _ in rows):
        return table(("option", "default", "meaning"), rows)
    return table(("option", "meaning"), [(spelling, meaning) for spelling, _, meaning in rows])


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
    if level == 1:
        yield NOTE
    yield f"```text\n{' '.join(words)}\n```"
    yield inspect.cleandoc(command.help or "").replace("\b\n", "")
    options = [option_row(each) for each in command.params if isinstance(each, click.Option) and not each.hidden]
    if options:
        yield options_table(options)
    if isinstance(command, click.Group):
        for inner, sub in sorted(command.commands.items()):
            yield from command_parts(f"{name} {inner}", sub, level + 1)


def index_rows(name: str) -> Iterator[tuple[str, str]]:
    """A command in the index, and below it those of a group."""
    yield f"[`{name}`]({name}.md)", COMMANDS[name]
    command = load(name)
    if isinstance(command, click.Group):
        for inner, sub in sorted(command.commands.items()):
            purpose = inspect.cleandoc(sub.help or "").partition("\n\n")[0].replace("\n", " ")
            yield f"[`{name} {inner}`]({name}.md#axletree-{name}-{inner})", purpose


def cli_index() -> str:
    """The list of commands by purpose, and the options that all of them share."""
    grouped = [name for names in COMMAND_GROUPS.values() for name in names]
    groups = {**COMMAND_GROUPS, "More": tuple(sorted(set(COMMANDS).difference(grouped)))}
    shared = (each for each in cli.params if isinstance(each, click.Option) and each.name != "version")
    parts = ["# Commands", NOTE, "`axletree COMMAND --help` prints the same text as the page of a command."]
    for title, names in groups.items():
        rows = [row for name in names if name in COMMANDS for row in index_rows(name)]
        parts += [f"## {title}", table(("command", "purpose"), rows)] if rows else []
    parts += [
        "## Options of all commands",
        "Put these options before the command, as in `axletree --quiet build RECIPE`. [Output](../output.md) explains "
        "them, and the exit codes.",
        options_table([option_row(each) for each in shared]),
    ]
    return "\n\n".join(parts) + "\n"


def cli_pages() -> dict[str, str]:
    """File name -> page of each command; a group has its subcommands on its page."""
    pages = {
        f"cli/{name}.md": "\n\n".join(command_parts(f"axletree {name}", load(name), 1)) + "\n" for name in COMMANDS
    }
    return {"cli/index.md": cli_index(), **pages}


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
        "`axletree build --json` prints one JSON object per line. The field `event` names its type, and `time` is in "
        "seconds since the epoch. For each stage, progress and memory events are limited to two per second each; they "
        "have the latest step and the largest sample.",
        f"This is version {events.EVENT_SCHEMA} of the schema. Fields may be added to a version but are never renamed. "
        "[events.schema.json](events.schema.json) is the JSON schema of a line (`axletree schema events` prints it).",
        "The last line is the [report](reports.md#build) of the build instead of an event: it has `command` but no "
        "`event`. The build prints it even if it fails, is canceled or has nothing to do.",
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
    """The report of each command, and the structures inside."""
    reports = report_types(cli)
    definitions = reports_schema(reports)["$defs"]
    structures = structs_of(reports.values())
    names = {structure: name for name, structure in structures.items()}
    parts = [
        "# Reports",
        NOTE,
        "With `--json`, a command prints its report as one line on stdout and all other messages on stderr. The report "
        "is the `result` of an envelope that is the same for all commands:",
        table(("field", "meaning"), ((code(field), text) for field, text in field_docs(Envelope).items())),
        f"This is version {SCHEMA} of the schema. Fields may be added to a version but are never renamed or removed. "
        "[reports.schema.json](reports.schema.json) is the JSON schema of all reports. `axletree schema reports` "
        'prints it; `axletree schema "env create"` prints the schema of one command. A command that fails without a '
        "result prints its error on stderr and no report. `build` and `run-stage` print [events](events.md), one per "
        "line, before their report.",
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
    """The failures that `axletree diagnose` knows, by the stage that fails."""
    kinds = read_shipped(FAILURE_KINDS)
    parts = [
        "# Failures",
        NOTE,
        "`axletree diagnose` finds these failures in logs. They are grouped by the stage that fails. "
        "`axletree rules NAME` prints the cause of a failure, its fix, and sample logs. A **warning** means that the "
        "build continues without something. If no specific kind matches, a generic one names the file, library, symbol "
        "or header, and `diagnose` shows the most likely lines.",
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
        **cli_pages(),
        "events.md": events_page(),
        "events.schema.json": schema_text(event_schema()),
        "reports.md": reports_page(),
        "reports.schema.json": schema_text(reports_schema(report_types(cli))),
        "rules.md": render_rules(RULES),
        "failures.md": failures_page(),
        "settings.md": settings_page(),
        "sdk-manifest.md": sdk_manifest_page(),
        "sdk-manifest.schema.json": schema_text(sdk_manifest_schema()),
        "../../src/axletree/cli/outline.json": json.dumps(outline_of(cli)["commands"], indent=1) + "\n",
    }


def leftovers(written: Iterable[str]) -> list[Path]:
    """Pages of commands that no longer exist."""
    return sorted(set((REFERENCE / "cli").glob("*.md")).difference(REFERENCE / name for name in written))


def stale() -> list[str]:
    """Names of the pages that differ from the code."""
    wanted = pages()
    differing = [
        name
        for name, text in wanted.items()
        if not (REFERENCE / name).exists() or (REFERENCE / name).read_text(encoding="utf-8") != text
    ]
    return [*differing, *(f"cli/{page.name}" for page in leftovers(wanted))]


def main() -> int:
    """Write the pages, or compare them."""
    if "--check" in sys.argv[1:]:
        for name in stale():
            print(f"docs/reference/{name} differs from the code: run `make docs`")
        return 1 if stale() else 0
    (REFERENCE / "cli").mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for page in leftovers(wanted):
        page.unlink()
    for name, text in wanted.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
