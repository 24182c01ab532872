"""RECORD is CSV, whatever stands in a file's name."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.wheel.record import RecordEntry, parse_record, render_record

PATHS = st.text(st.one_of(st.sampled_from('",\r\n a/'), st.characters(codec="utf-8")), min_size=1, max_size=12)
ENTRIES = st.builds(RecordEntry, path=PATHS, hash=st.sampled_from(["", "sha256=abc"]), size=st.none() | st.integers(0))


@given(st.lists(ENTRIES, max_size=6))
def test_what_is_written_is_read_by_us_and_by_csv(entries: list[RecordEntry]) -> None:
    data = render_record(entries)
    rows = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
    assert rows == [[entry.path, entry.hash, "" if entry.size is None else str(entry.size)] for entry in entries]
    short = [entry for entry in entries if entry.size is None or entry.size < 10**19]
    assert parse_record(render_record(short)) == tuple(short)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_empty_lines(end: str) -> None:
    data = end.join(["a,sha256=x,1", "", "b,,", ""]).encode()
    assert [entry.path for entry in parse_record(data)] == ["a", "b"]


def test_each_bad_line_is_named() -> None:
    with pytest.raises(IntegrityError) as error:
        parse_record(b"a,b\nfine,,\n,x,1\nc,,many\nd,e,f,g\n")
    assert [problem.line for problem in error.value.problems] == [1, 3, 4, 5]
