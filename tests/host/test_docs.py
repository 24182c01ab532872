"""The docs say what the code says: generated pages, commands, recipes, links."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pytest

from axletree.check.rules.wheel.all import DIST_RULES
from axletree.cli.main import COMMANDS, load
from axletree.package.split.rules import parse_split_rules
from axletree.recipe.defaults import is_short
from axletree.recipe.model import Recipe
from axletree.recipe.schema import recipe_schema
from pure.test_voice import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(axletree(?:_runtime)?(?:\.\w+)+|[\w-]+/[\w./*-]+)`")
"""A module or a path in a text."""
OTHERS = {"axletree.actions", "axletree.toml", "axletree/_recipes"}
"""An entry point, a settings file and a folder of the built package: no files of this repository."""
NOT_CHECKED = {"CONTRIBUTING.md", "projects.md"}
"""Pages that quote how not to write, and older ones whose texts the patterns do not fit yet."""
ANCHORED = {"inversion", "lies", "no name of"}
"""Patterns for whole messages, and one that finds "lay out"."""
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
    command = load(name)
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


def test_an_editor_with_the_schema_accepts_recipes_short_ones_and_those_that_extend_others(
    generate: Any, tmp_path: Path
) -> None:
    read = [(text, tomllib.loads(text)) for _, text in blocks("toml")]
    extending, short = ([text for text, values in read if is_it(values)] for is_it in (extends_another, is_short))
    shown = [*extending, *short, *(text for text, values in read if {"name", "version", "source"} <= values.keys())]
    assert extending
    assert short
    for number, text in enumerate(shown):
        (tmp_path / f"{number}.toml").write_text(text, encoding="utf-8")
    files = [*(ROOT / "recipes").glob("*.toml"), *(ROOT / "docs/proof/projects").glob("*.toml"), *tmp_path.iterdir()]
    schema = tmp_path / "recipe.schema.json"
    schema.write_text(generate.schema_text(recipe_schema()), encoding="utf-8")
    done = check_jsonschema(schema, *files)
    assert done.returncode == 0, done.stdout
    (tmp_path / "bad.toml").write_text('extends = "pytorch"\nversoin = "1"\n', encoding="utf-8")
    done = check_jsonschema(schema, tmp_path / "bad.toml")
    assert (done.returncode, "versoin" in done.stdout) == (1, True)


def extends_another(values: dict[str, Any]) -> bool:
    return isinstance(values.get("extends"), str)


def check_jsonschema(schema: Path, *files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema), *map(str, files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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


def places_of(name: str) -> list[Path]:
    """Where the file of a module or path that a page names may be; nothing if the name is of something else."""
    source, path = ROOT / "src", name.replace("NAME", "*").replace("STAGE", "*").rstrip("/")
    if "/" not in path:
        path = path.replace(".", "/")
        return [source / path, source / f"{path}.py", source / f"{path.rpartition('/')[0]}.py"]
    top, *_ = path.split("/")
    if top in {"axletree", "axletree_runtime"}:
        return [source / path, source / f"{path}.py"]
    if (source / "axletree" / top).is_dir():
        return [source / "axletree" / path, source / "axletree" / f"{path}.py"]
    return [ROOT / path] if top in {"src", "tests", "docs", "scripts", "recipes", "benchmarks"} else []


def missing_of(text: str) -> list[str]:
    """The modules and paths that a page names and that do not exist."""
    names = [name for name in NAMED.findall(FENCE.sub("", text)) if name not in OTHERS and places_of(name)]
    return [name for name in names if not any(list(ROOT.glob(str(p.relative_to(ROOT)))) for p in places_of(name))]


def test_modules_and_paths_that_pages_name_exist() -> None:
    handwritten = [page for page in PAGES if page.parent.name not in {"reference", "cli"}]
    missing = {str(page.relative_to(ROOT)): missing_of(page.read_text(encoding="utf-8")) for page in handwritten}
    assert not {page: names for page, names in missing.items() if names}


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("in `package/wheel` and `axletree.cli.main`, `tests/pure`, `recipes/split/NAME.toml`", []),
        ("in `package/wheels/x`, `axletree.cli.other`", ["package/wheels/x", "axletree.cli.other"]),
        ("`.dist-info/sboms`, `torch/lib` and `src/axletree/nothing.py`", ["src/axletree/nothing.py"]),
    ],
)
def test_names_that_do_not_exist_are_found(text: str, missing: list[str]) -> None:
    assert missing_of(text) == missing


def test_a_page_without_a_command_is_stale(generate: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(generate, "REFERENCE", tmp_path)
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "gone.md").write_text("# axletree gone\n")
    assert "cli/gone.md" in generate.stale()


def prose_of(page: str) -> str:
    """A page without its code, with as many lines."""
    without = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page)
    return re.sub(r"`[^`\n]*`", "`x`", without)


def test_pages_read_as_english_that_was_written() -> None:
    found = [
        f"{page.relative_to(ROOT)}:{number}: {name}: {line}"
        for page in PAGES
        if page.name not in NOT_CHECKED and page.parent.name not in {"reference", "cli"}
        for number, line in enumerate(prose_of(page.read_text(encoding="utf-8")).splitlines(), 1)
        for name, (pattern, _, _) in PATTERNS.items()
        if name not in ANCHORED and re.search(pattern, line)
    ]
    assert not found, "\n".join(found)


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken, broken
