"""CMake files as lists of commands: what CMake takes for an argument, where it stands, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.cmake.syntax import Replacement, parse_cmake, replaced, split_list


def words(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(command.name, command.words()) for command in parse_cmake(text, file="x.cmake")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\ufeff# nothing\n", []),
        ("set(a b)", [("set", ("a", "b"))]),
        ("SET ( a\n  b # no)\n)", [("set", ("a", "b"))]),
        ('message("a;\\"b\\" (c) # d")', [("message", ('a;\\"b\\" (c) # d',))]),
        ('set(a [==[x ]] " ) ]==] c)', [("set", ("a", 'x ]] " ) ', "c"))]),
        ("#[[ a comment )\n]] set(a)", [("set", ("a",))]),
        ("set(a #[=[ inside ) ]=] b)", [("set", ("a", "b"))]),
        ("#[not a bracket\nset(a)", [("set", ("a",))]),
        ("if((A AND (B)) OR C)\nendif()", [("if", ("(", "A", "AND", "(", "B", ")", ")", "OR", "C")), ("endif", ())]),
        ('set(a -Dx="b c" $(MAKE) \\; \\()', [("set", ("a", '-Dx="b c"', "$(MAKE)", "\\;", "\\("))]),
        ('set(a "${b}/c" ${d}[0])', [("set", ("a", "${b}/c", "${d}[0]"))]),
        ('set(a "")', [("set", ("a", ""))]),
        ("set(a b)set(c)", [("set", ("a", "b")), ("set", ("c",))]),
    ],
)
def test_arguments_are_those_of_cmake(text: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("set(a\n\n", 3, "set has no closing parenthesis"),
        ("\nset a", 2, "missing parenthesis after set"),
        ("a()\n)", 2, "expected a command here"),
        ('set("a', 1, "an argument is not closed"),
        ("set([=[a]])", 1, "a bracket argument is not closed"),
        ("#[[ a", 1, "a bracket comment is not closed"),
        ("\x7fELF", 1, "expected a command here"),
    ],
)
def test_what_is_no_cmake_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        parse_cmake(text, file="x.cmake")
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == ("x.cmake", line)
    assert message in problem.message


def test_places_are_those_of_the_text() -> None:
    text = 'set_target_properties(c10 PROPERTIES\n  A "one;two"\n  B [[three]])\n'
    (command,) = parse_cmake(text, file="x.cmake")
    assert [text[each.start : each.end] for each in command.arguments] == list(command.words())
    assert text[command.start : command.end] == text.rstrip("\n")


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", ("",)),
        ("a;b", ("a", "b")),
        ("a\\;b;c", ("a\\;b", "c")),
        ("\\$<LINK_ONLY:a;b>;c", ("\\$<LINK_ONLY:a;b>", "c")),
        ("$<$<CONFIG:Release>:a;b>;", ("$<$<CONFIG:Release>:a;b>", "")),
        ('-Wl,--no-as-needed,\\"\\$<TARGET_FILE:t>\\" -Wl,--as-needed;c', None),
    ],
)
def test_lists_are_divided_outside_of_generator_expressions(text: str, items: tuple[str, ...] | None) -> None:
    expected = items or (text.rpartition(";")[0], "c")
    assert split_list(text) == expected


@given(st.text(alphabet='ab;\\$<>:"', max_size=30))
def test_a_divided_list_can_be_put_together_again(text: str) -> None:
    assert ";".join(split_list(text)) == text


NAMES = st.text(alphabet="abcXYZ_", min_size=1, max_size=8)
PLAIN = st.text(alphabet="abc/${}.:-+", min_size=1, max_size=10).filter(lambda text: "$(" not in text)
QUOTED = st.text(alphabet="abc ;()#\n[]=", max_size=12).map(lambda text: f'"{text}"')
ARGUMENTS = st.lists(st.one_of(PLAIN, QUOTED), max_size=5)
SPACES = st.sampled_from([" ", "\n", "\t", ' # comment ()"\n', "\n#[[ more\n) ]]\n"])


@given(st.lists(st.tuples(NAMES, ARGUMENTS, SPACES), max_size=6))
def test_whatever_is_written_is_read(commands: list[tuple[str, list[str], str]]) -> None:
    text = "\n".join(f"{name}{' '}({space.join(['', *arguments])}{space})" for name, arguments, space in commands)
    assert words(text) == [
        (name.lower(), tuple(each.strip('"') if each.startswith('"') else each for each in arguments))
        for name, arguments, _ in commands
    ]


def test_replacements_leave_all_else() -> None:
    assert replaced("abcdef", [Replacement(start=4, end=5, text=""), Replacement(start=1, end=3, text="X")]) == "aXdf"
    with pytest.raises(IntegrityError, match="two edits"):
        replaced("abcdef", [Replacement(start=1, end=3, text=""), Replacement(start=2, end=4, text="")])


def test_a_template_may_have_placeholders_for_commands() -> None:
    text = "set(flags @FLAGS@)\n@MORE_COMMANDS@\nset(more 1)\n"
    assert [command.words() for command in parse_cmake(text, file="f")] == [("flags", "@FLAGS@"), ("more", "1")]
