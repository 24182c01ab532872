"""Headers of ZIP archives: the two of a member made at once are those made one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.zip.records import Written, both_headers, central_header, local_header

SIZE = st.integers(0, 1 << 20) | st.integers((1 << 32) - 3, (1 << 32) + 3) | st.integers(0, 1 << 40)


@given(
    path=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    executable=st.booleans(),
    numbers=st.tuples(SIZE, SIZE, SIZE, st.integers(0, (1 << 32) - 1)),
)
def test_both_headers_are_those_made_one_by_one(
    path: str, numbers: tuple[int, int, int, int], *, executable: bool
) -> None:
    offset, size, bound, crc = numbers
    member = Written(
        path=path, method=8, executable=executable, offset=offset, size=size, crc=crc, compressed=size, bound=bound
    )
    stamp = (1, 33)
    assert both_headers(member, stamp) == (local_header(member, stamp), central_header(member, stamp))
