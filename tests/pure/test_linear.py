"""Expressions over logs: what they cost is bounded, and what they find is what Python's engine finds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.check.diagnosis import linear, log
from axletree.check.diagnosis.decode import FAILURE_KINDS, decode_kinds
from axletree.check.diagnosis.engine import Engine
from axletree.check.diagnosis.generic import GENERIC_KINDS
from axletree.check.diagnosis.kind import Kind
from axletree.check.diagnosis.linear import TRIES, Expression, expression
from axletree.check.diagnosis.literals import required_texts
from axletree.check.diagnosis.outcome import Statement, recoveries, within
from axletree.core.errors import IntegrityError
from axletree.host.shipped_data import read_shipped
from support.ambiguity import verdict
from support.expressions import lines_for

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (*read_shipped(FAILURE_KINDS), *GENERIC_KINDS)
SOURCE = Path(linear.__file__).parent
BLIND = {
    "commands.py": "shell lines of our own fixes",
    "decode.py": "texts of our own tables",
    "linear.py": "expressions",
    "literals.py": "expressions",
    "log.py": "cleaning of lines, proved below",
    "outcome.py": "words of a line, proved below",
}
"""Where Python's engine may be used, and on what."""


class Counting:
    """RE2, and how often it was asked to search."""

    def __init__(self, regex: object, counts: Counter[str], name: str) -> None:
        self._regex, self._counts, self._name = regex, counts, name

    def __getattr__(self, name: str) -> object:
        return getattr(self._regex, name)

    def search(self, text: bytes, start: int = 0) -> object:
        self._counts[self._name] += 1
        return self._regex.search(text, start)  # type: ignore[attr-defined]


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often each expression was searched for."""
    counts: Counter[str] = Counter()
    made = Expression.__init__

    def counted(self: Expression, pattern: str) -> None:
        made(self, pattern)
        self._regex = Counting(self._regex, counts, pattern)

    monkeypatch.setattr(Expression, "__init__", counted)
    linear.expression.cache_clear()
    yield counts
    linear.expression.cache_clear()


def kind(*patterns: str, needs: tuple[str, ...] = ()) -> Kind:
    return Kind(
        id="runtime/planted",
        stage="runtime",
        title="",
        patterns=patterns,
        needs=needs,
        cause="",
        fix="",
        samples=("x",),
    )


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"error: (?P<what>(?!Killed)\w+)", "error: Killed error: broke", {"what": "broke"}),
        (r"(?<!fatal )error (?P<what>\d+)", "fatal error 1, error 2", {"what": "2"}),
        (r"(?P<what>\w+)(?= failed)", "it works; that failed", {"what": "that"}),
        (r"-(?P<what>(?!m(?!no-)[a-z])\w[\w-]*)", "-march -mno-avx", {"what": "mno-avx"}),
        (r"(?:cuda(?!nn)|hip)(?P<what>\w+)", "cudnn cudann hipfft", {"what": "fft"}),
        (r"name '(?P<what>[\w.-]+)'", "name 'größe-1'", {"what": "größe-1"}),
        (r"(?P<what>b)\Z", "ab", {"what": "b"}),
        (r"(?:foo(?P<what>x))?bar", "bar", {}),
        (r"[]\w](?P<what>=)", "]=", {"what": "="}),
    ],
)
def test_finds_what_it_says(pattern: str, text: str, found: dict[str, str]) -> None:
    match = Expression(pattern).search(text)
    assert match is not None
    assert match.groups == found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(a)\1", r"\\1"),
        (r"(?>a+)b", "is not supported"),
        (r"a*+b", "bad repetition"),
        (r"(?P=name)", "is not supported"),
        (r"(?(1)a|b)", "is not supported"),
        (r"(?:(?!x)a)*", "a repeated group contains"),
        (r"(?:(?!x)a){2}", "a repeated group contains"),
        (r"(?!x)*", "is repeated"),
        (r"\p{L}+", r"\\p is not supported"),
        (r"[^\W\d]", r"\\W is not supported"),
        (r"\Qa.b\E", r"\\Q is not supported"),
        (r"[[:alpha:]]", r"contains \[:"),
        (r"[a-", "is not closed"),
        (r"(?=a", "is not closed"),
        (r"(a", "missing"),
        (r"(?:(?:a{100}){100}){100}", "invalid repetition"),
        (r"[^\n]{1000}[^\n]{1000}", "too big|too large"),
    ],
)
def test_refuses_what_has_no_bound(pattern: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Expression(pattern)


def test_the_name_of_a_kind_that_is_refused_and_its_file_are_told() -> None:
    planted = """[[kind]]
id = "runtime/planted"
stage = "runtime"
title = "t"
patterns = ['''error in '(\\w+)' and \\1''']
cause = "c"
fix = "f"
samples = ["x"]
"""
    with pytest.raises(IntegrityError) as caught:
        decode_kinds(planted.encode(), file="kinds/runtime.toml")
    (problem,) = caught.value.problems
    assert (problem.file, problem.key) == ("kinds/runtime.toml", "runtime/planted")
    assert r"\1" in problem.message


def test_an_expression_that_takes_others_for_ever_ends() -> None:
    """2**5000 ways to share the line; Python's engine would not come back."""
    assert verdict(r"stuck (?:\w+\s?)+!$") == "exponential"
    found = Engine([kind(r"stuck (?:\w+\s?)+!$")]).diagnose([b"stuck " + b"a" * 5000 + b"\nerror: x\n"])
    assert "runtime/planted" not in [each.rule for each in found.findings]


@pytest.mark.parametrize("frames", [44, 400])
def test_a_long_traceback_costs_as_much_as_its_lines(frames: int, searches: Counter[str]) -> None:
    traceback = ["Traceback (most recent call last):"]
    for number in range(frames):
        traceback += [f'  File "/x", line {number}, in f', "    return g(number)", "           ^^^^^^^^^"]
    text = "\n".join([*traceback, "LookupError: no version", "", "error: the build backend failed"]).encode()
    Engine(GENERIC_KINDS).diagnose([text])
    assert sum(searches.values()) < 3 * len(text.splitlines())


def test_twice_the_lines_cost_twice_the_searches(searches: Counter[str]) -> None:
    engine = Engine(KINDS)
    lines = [line for each in KINDS[::9] for line in each.samples[0].encode().split(b"\n")]

    def cost(times: int) -> int:
        searches.clear()
        engine.diagnose([b"\n".join(lines * times)])
        return sum(searches.values())

    once, twice, four = cost(8), cost(16), cost(32)
    assert once > 500
    assert four - twice <= 2.2 * (twice - once)


def test_refused_matches_of_a_line_are_few(searches: Counter[str]) -> None:
    planted = Expression(r"(?<!error: )undefined symbol (?P<name>\w*)")
    searches.clear()
    text = b"error: undefined symbol a " * 5000 + b"\nundefined symbol b"
    found = planted.search(text)
    assert found is not None
    assert found.groups == {"name": "b"}
    own = searches[r"(?<!error: )undefined symbol (?P<name>\w*)"]
    assert own <= TRIES + 1


def test_what_stands_around_is_looked_for_once_in_a_block(searches: Counter[str]) -> None:
    engine = Engine([kind(r"fatal: no repository", needs=("CMake Error",))])
    searches.clear()
    engine.diagnose([b"fatal: no repository\n" * 5000])
    assert searches["CMake Error"] == 1


@pytest.mark.parametrize("each", KINDS, ids=lambda each: each.id)
def test_kinds_cost_a_bounded_number_of_searches_a_line(each: Kind) -> None:
    """Lines made of the expressions themselves: all their fixed text, what is repeated many times, and no end."""
    for pattern in each.patterns:
        counts: Counter[str] = Counter()
        made = Expression(pattern)
        made._regex = Counting(made._regex, counts, pattern)
        for text in lines_for(pattern):
            counts.clear()
            data = (text + "\n").encode() * 3
            list(made.lines(data))
            assert counts[pattern] <= (TRIES + 1) * (data.count(b"\n") + 1)


@pytest.mark.parametrize("each", KINDS, ids=lambda each: each.id)
def test_kinds_find_in_their_samples_what_python_finds(each: Kind) -> None:
    for pattern in (*each.patterns, *each.needs, *each.unless):
        python, ours = re.compile(pattern, re.MULTILINE), expression(pattern)
        for sample in (*each.samples, *each.silent):
            theirs = python.search(sample)
            found = ours.search(sample)
            assert (found is None) == (theirs is None), (pattern, sample)
            if found is not None and theirs is not None:
                named = {name: value for name, value in theirs.groupdict().items() if value is not None}
                assert found.groups == named
        if pattern in each.patterns:
            assert required_texts(pattern)


@pytest.mark.parametrize("file", sorted(SOURCE.glob("*.py")), ids=lambda file: file.name)
def test_nothing_else_meets_a_log(file: Path) -> None:
    used = {
        node.names[0].name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
    }
    assert "re" not in used or file.name in BLIND


def test_python_s_own_engine_is_linear_where_it_is_used() -> None:
    for pattern in (log._ESCAPES, log._PREFIX, log._ONCE, re.compile(r"\w+")):
        assert verdict(pattern.pattern, pattern.flags) == "linear"


def test_a_link_without_an_end_takes_no_other_lines_with_it() -> None:
    (block,) = log.read_blocks([b"one \x1b]8;;http\ntwo\nthree \x1b\\\nfour"])
    assert block.lines == (b"one ", b"two", b"three ", b"four")


def test_what_was_made_good_is_found_whatever_the_number_of_failures() -> None:
    said = [
        Statement(line=line, failed=True, text=f"ERROR: Failed building wheel for my_pkg.{line}")
        for line in range(1000, 4000, 3)
    ]
    said += [Statement(line=5000, failed=False, text="Successfully built other-1.0 My-Pkg.1003-2.0 my_pkg.1006")]
    made = recoveries(said)
    assert made == [range(803, 5001)]
    assert within(made, 803)
    assert within(made, 5000)
    assert not within(made, 802)
    assert not within(made, 5001)
    assert not within([], 1)
