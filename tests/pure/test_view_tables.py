from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.units import format_bytes, format_clock, format_duration, plural
from axletree.view.tables import printable, render_table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.04, "0 s"),
        (0.14, "0.1 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185.0, "3 min 05 s"),
        (3599.4, "59 min 59 s"),
        (3600.0, "1 h 00 min"),
        (7620.0, "2 h 07 min"),
        (200_000.0, "55 h 33 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-1.0, "0:00"), (0.9, "0:00"), (249.0, "4:09"), (3600.0, "1:00:00"), (3753.0, "1:02:33")]
)
def test_clocks(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (9_994, "9.99 kB"),
        (9_996, "10.0 kB"),
        (99_960, "100 kB"),
        (999_499, "999 kB"),
        (999_600, "1.00 MB"),
        (190_318_226, "190 MB"),
        (1_700_000_000, "1.70 GB"),
        (12_345_000_000_000, "12.3 TB"),
        (5_000_000_000_000_000, "5000 TB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_plural() -> None:
    assert (plural(1, "stage"), plural(0, "stage"), plural(1234, "stage")) == ("1 stage", "0 stages", "1,234 stages")


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31merror:\x1b[0m no", "error: no"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;file:///x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\rb\x08c\x00", "abc"),
        ("tab\tstays\nand lines", "tab\tstays\nand lines"),
        ("evil\u202etxt", "eviltxt"),
        ("é ü 日本", "é ü 日本"),
    ],
)
def test_printable(raw: str, clean: str) -> None:
    assert printable(raw) == clean


@given(st.text())
def test_printable_text_moves_no_cursor(text: str) -> None:
    assert not set(printable(text)) & {"\x1b", "\r", "\x08", "\x9b", "\x07"}
    assert printable(printable(text)) == printable(text)


WORDS = st.lists(st.text("abc-[]", min_size=1, max_size=30), max_size=8).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=6), st.integers(min_value=1, max_value=120))
def test_tables_never_cut_a_word(rows: list[tuple[str, str, str]], width: int) -> None:
    text = render_table(["A", "B", "C"], rows, width=width)
    drawn = sorted(word for line in text.splitlines()[1:] for word in line.split())
    assert drawn == sorted(word for row in rows for cell in row for word in cell.split())
    assert all(line == line.rstrip() for line in text.splitlines())


def test_the_widest_column_of_words_is_wrapped() -> None:
    text = render_table(["ID", "WHY"], [["build[py311-cpu-torch2.13.0]", "because the patch changed " * 3]], width=60)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[1].startswith("build[py311-cpu-torch2.13.0]  because")
    assert lines[2].startswith(" " * 30)
