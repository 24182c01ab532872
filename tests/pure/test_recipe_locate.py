"""Lines of keys: each key path of a document is found, on the line where it stands."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from axletree.recipe.locate import line_of, locate, source_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.recipe.faults import Path


def paths(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every key path of a parsed document, with its value."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, (*path, key))
    if isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths(inner, (*path, number))


def assert_located(text: str) -> None:
    """Every path has a line; a marker, a number that occurs once, stands on the line of its path."""
    found, lines = locate(text), source_lines(text)
    for path, value in paths(tomllib.loads(text)):
        assert path in found, f"{path} has no line in:\n{text}"
        if isinstance(value, int) and value >= 1000:
            assert str(value) in lines[found[path] - 1], f"{path} is not on line {found[path]} of:\n{text}"


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["a", "b", "a.b", "", "a-b", "1"]
)
TEXTS = st.text(
    st.sampled_from(
        ["a", '"', "'", "\\", "\n", "\t", "#", "[", "]", "{", "}", ",", "=", ".", " ", "é", "\r", "\x85", "\u2028"]
    ),
    max_size=8,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Tables whose whole numbers are all different."""
    counter = iter(range(1000, 100_000))
    leaves = TEXTS | st.booleans() | st.floats(allow_nan=False) | st.dates() | st.datetimes() | st.builds(lambda: None)

    def mark(value: Any) -> Any:
        if value is None:
            return next(counter)
        if isinstance(value, list):
            return [mark(item) for item in value]
        return {key: mark(item) for key, item in value.items()} if isinstance(value, dict) else value

    tree = st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
    )
    return mark(draw(st.dictionaries(KEYS, tree, max_size=6)))  # type: ignore[no-any-return]


@given(document=documents(), multiline=st.booleans())
def test_every_path_of_what_another_writer_wrote(document: dict[str, Any], *, multiline: bool) -> None:
    assert_located(tomli_w.dumps(document, multiline_strings=multiline))


class Writer:
    """Writes a document in styles that tomli-w never uses, as Hypothesis draws them."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.gaps = st.sampled_from(["", " ", "\n", " # x = [1]\n", '\n\n\t# ] } """\n'])

    def key(self, key: str) -> str:
        plain = key != "" and all(char.isascii() and (char.isalnum() or char in "-_") for char in key)
        styles = [tomli_w.dumps({key: 1}).rpartition(" = ")[0]]
        if plain:
            styles += [key, f"'{key}'"]
        return self.draw(st.sampled_from(styles))

    def text(self, value: str) -> str:
        basic = tomli_w.dumps({"k": value}).removeprefix("k = ").rstrip("\n")
        styles = [basic, f'""{basic[:1]}{basic[1:-1]}""{basic[-1:]}' if not value.startswith("\n") else basic]
        if not any(char in value for char in "'\n\r\x85\u2028"):
            styles += [f"'{value}'", f"'''{value}'''"]
        return self.draw(st.sampled_from(styles))

    def value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            gap = [self.draw(self.gaps) for _ in range(2 * len(value) + 2)]
            items = "".join(
                f"{gap[2 * number]}{self.value(item)}{gap[2 * number + 1]}," for number, item in enumerate(value)
            )
            return f"[{items}{gap[-1]}]"
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{self.key(key)} = {self.value(inner)}" for key, inner in value.items()) + " }"
        return tomli_w.dumps({"k": value}).removeprefix("k = ").rstrip("\n")

    def pairs(self, table: dict[str, Any], prefix: str = "") -> str:
        """Pairs of a table; tables inside are inline or dotted keys."""
        lines = []
        for key, value in table.items():
            name = prefix + self.key(key)
            if isinstance(value, dict) and value and self.draw(st.booleans()):
                lines.append(self.pairs(value, f"{name} . "))
            else:
                lines.append(f"{name}\t= {self.value(value)}  # a comment\n")
        return "".join(lines)

    def document(self, document: dict[str, Any]) -> str:
        heads = {key: value for key, value in document.items() if self.headed(value) and self.draw(st.booleans())}
        text = "# first\n" + self.pairs({key: value for key, value in document.items() if key not in heads})
        for key, value in heads.items():
            if isinstance(value, list):
                text += "".join(f"\n[[ {self.key(key)} ]] # head\n{self.pairs(item)}" for item in value)
            else:
                text += f"\n[{self.key(key)}]\n{self.pairs(value)}"
        return text

    @staticmethod
    def headed(value: Any) -> bool:
        return isinstance(value, dict) or (
            isinstance(value, list) and value != [] and all(isinstance(item, dict) for item in value)
        )


@given(data=st.data(), document=documents(), windows=st.booleans())
def test_every_path_in_unusual_styles(data: st.DataObject, document: dict[str, Any], *, windows: bool) -> None:
    text = Writer(data).document(document)
    parsed = tomllib.loads(text)
    assert parsed == document
    assert_located(text.replace("\n", "\r\n") if windows and "\r" not in text else text)


EXAMPLE = '''\
# comment
top = 1
a.b."c.d" = [
  1, # one
  { x = 2, y = """
three ] quotes """" },
]

[t.u]
k = 'it''s'
'''


def test_lines_of_an_example() -> None:
    text = EXAMPLE.replace("'it''s'", "'its'")
    found = locate(text)
    assert found[("top",)] == 2
    assert found[("a",)] == found[("a", "b", "c.d")] == 3
    assert found[("a", "b", "c.d", 0)] == 4
    assert found[("a", "b", "c.d", 1)] == found[("a", "b", "c.d", 1, "y")] == 5
    assert found[("t",)] == found[("t", "u")] == 9
    assert found[("t", "u", "k")] == 10


def test_arrays_of_tables_with_tables_inside() -> None:
    text = "[[a]]\n[a.b]\nx = 1\n[[a.c]]\ny = 2\n[[a]]\n[[a.c]]\n[[a.c]]\ny = 3\n[d.e]\n[d]\n"
    found = locate(text)
    assert found[("a",)] == found[("a", 0)] == 1
    assert found[("a", 0, "b", "x")] == 3
    assert found[("a", 0, "c", 0, "y")] == 5
    assert found[("a", 1)] == 6
    assert found[("a", 1, "c", 1, "y")] == 9
    assert found[("d",)] == 11, "its own header, not the table inside that implied it"


@pytest.mark.parametrize("path", [("a", "missing"), ("a", "b", 7, "x")])
def test_a_path_that_is_not_written_has_the_line_of_its_table(path: Path) -> None:
    assert line_of({("a",): 3, ("a", "b"): 4}, path) in {3, 4}
    assert line_of({}, path) is None


def test_only_line_feeds_end_a_line() -> None:
    assert source_lines("a\u2028b\x0bc\r\nd") == ["a\u2028b\x0bc", "d"]


def test_what_is_no_toml_ends() -> None:
    with pytest.raises(ValueError, match="not valid TOML"):
        locate("!!")
