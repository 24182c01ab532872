"""Files of conda's environments beside the tables that they become, and faulty ones beside what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from packaging.requirements import Requirement

from axletree.core.errors import RecipeError
from axletree.environment.conda_file import read_explicit, spec_of_address
from axletree.environment.environment_yml import read_environment_yml
from axletree.environment.imported import Imported, recipe_table
from axletree.recipe.documents import read_document
from axletree.recipe.match_spec import parse_match_spec
from axletree.recipe.only_environments import stood_in
from axletree.recipe.parse import parse_document

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "imported"
FILES = sorted([*FOLDER.glob("*.yml"), *FOLDER.glob("*.txt")])
FAULTY = sorted([*FOLDER.glob("faulty/*.yml"), *FOLDER.glob("faulty/explicit*.txt")])


def read(path: Path, *, own: str = "3.12") -> Imported:
    reader = read_explicit if path.suffix == ".txt" else read_environment_yml
    return reader(path.read_text(encoding="utf-8"), file=path.name, name=None, own=own)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_environment_becomes_a_table(path: Path, golden: Callable[[str, str], None]) -> None:
    golden(f"imported/{path.stem}.toml", recipe_table(read(path), source=path.name))


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.name)
def test_what_is_wrong_with_a_file(path: Path, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(RecipeError) as caught:
        read(path)
    golden(f"imported/faulty/{path.name}.said", f"{caught.value}\n")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_is_lost(path: Path) -> None:
    """What PyYAML reads is in the table, or in a note that has its line; and the table is a recipe's."""
    text = path.read_text(encoding="utf-8")
    imported = read(path)
    table = recipe_table(imported, source=path.name)
    document = read_document(table, path.name)
    assert parse_document(stood_in(document, stem=path.stem)).environments.keys() == {imported.name}
    if path.suffix == ".txt":
        said = [line for line in text.splitlines() if not line.startswith(("#", "@"))]
        assert len(imported.requires) + sum(note.line is not None for note in imported.notes) == len(said)
        return
    noted = {note.line for note in imported.notes}
    kept = [entry.text for entry in (*imported.channels, *imported.requires, *imported.wheels)]
    kept += [imported.name, f"-r {imported.requires_from}", *(wheel.partition(" @ ")[2] for wheel in kept)]
    for each in leaves(yaml.safe_load(text)):
        file = spec_of_address(each)
        lines = {number for number, line in enumerate(text.splitlines(), 1) if each in line}
        pinned = each == "python" or (each.startswith("python") and imported.python.rstrip("t") in each)
        assert (each if file is None else file.spec) in kept or lines & noted or pinned, each
    for wheel in imported.wheels:
        Requirement(wheel.text)
    assert all(parse_match_spec(entry.text) for entry in imported.requires)


def leaves(values: object) -> list[str]:
    """All texts of a document, without its keys."""
    if isinstance(values, dict):
        return [text for value in values.values() for text in leaves(value)]
    if isinstance(values, list):
        return [text for value in values for text in leaves(value)]
    return [str(values)]


def test_no_secret_reaches_the_table() -> None:
    tables = [recipe_table(read(path), source=path.name) for path in FILES]
    assert all("***" not in table or "left out" in table for table in tables)
    assert not [secret for secret in ("secret", "hf_abcdefgh", "tk-123") for table in tables if secret in table]


def test_no_text_is_left_of_a_file_that_is_gone() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} <= {path.stem for path in FILES}
    assert {path.stem for path in FOLDER.glob("faulty/*.said")} <= {path.name for path in FAULTY}
