"""The docs say what the code says: generated pages, commands, recipes, links."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pytest

from axletree.check.rules.wheel.all import DIST_RULES
from axletree.cli.main import COMMANDS
from axletree.package.split.rules import parse_split_rules
from axletree.recipe.model import Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    """docs/generate.py as a module."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """(page, text) of the fenced blocks in a language."""
    for page in PAGES:
        for found, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if found == language:
                yield str(page.relative_to(ROOT)), text


def shown_commands() -> list[tuple[str, list[str]]]:
    """(page, arguments) of each axletree command that a page shows at a prompt."""
    return [
        (page, shlex.split(line.removeprefix("$ ")))
        for page, text in blocks("console")
        for line in text.splitlines()
        if line.startswith("$ axletree ")
    ]


def test_reference_pages_are_what_the_code_says(generate: Any) -> None:
    assert not generate.stale(), "run `make docs` and commit docs/reference"


def test_a_change_of_the_model_is_noticed(generate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "recipe_page", lambda: "another page")
    assert "recipe.md" in generate.stale()


def test_every_recipe_key_has_a_description(generate: Any) -> None:
    silent = [
        f"{name}.{key}"
        for name, table in generate.recipe_schema()["$defs"].items()
        for key, value in table["properties"].items()
        if "description" not in value
    ]
    assert not silent, f"describe them in Meta, beside the field: {silent}"


@pytest.mark.parametrize(("page", "words"), shown_commands(), ids=lambda value: value if isinstance(value, str) else "")
def test_commands_in_the_docs_exist_with_their_options(page: str, words: list[str]) -> None:
    _, name, *arguments = words
    assert name in COMMANDS, f"{page} shows `axletree {name}`"
    command: click.Command = importlib.import_module(f"axletree.cli.{COMMANDS[name][0]}").command
    if isinstance(command, click.Group) and arguments:
        assert arguments[0] in command.commands, f"{page} shows `{' '.join(words)}`"
        command, arguments = command.commands[arguments[0]], arguments[1:]
    try:
        command.make_parser(click.Context(command)).parse_args(list(arguments))
    except click.UsageError as error:
        pytest.fail(f"{page} shows `{' '.join(words)}`: {error.format_message()}")


def test_recipes_in_the_docs_are_recipes() -> None:
    whole = [(page, text) for page, text in blocks("toml") if text.startswith("name = ")]
    rules = [(page, text) for page, text in whole if "\nlabel = " in text]
    assert len(whole) > len(rules) > 0
    for page, text in whole:
        if (page, text) in rules:
            assert parse_split_rules(text, filename=str(page)).name, page
        else:
            assert msgspec.convert(tomllib.loads(text), Recipe).name, page


def test_toml_in_the_docs_is_toml() -> None:
    found = list(blocks("toml"))
    assert len(found) > 10
    for page, text in found:
        assert tomllib.loads(text), page


def test_the_readme_counts_the_rules_and_names_what_to_type_first() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| {len(DIST_RULES)} rules over " in readme
    (first,) = (text for page, text in blocks("sh") if page == "README.md")
    assert [line.partition("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]


def test_each_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/.-]+\.md\b", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken, broken
