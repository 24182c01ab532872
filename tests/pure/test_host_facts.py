"""Facts of a host as values: written, read back, of other schemas."""

from __future__ import annotations

import msgspec
import pytest

from axletree.check.host.facts import HostFacts, decode_facts
from axletree.check.host.part import UNLIMITED
from axletree.check.host.system import Cpu, Limit, System
from axletree.check.host.variables import Variable
from axletree.core.errors import UsageError
from axletree.report.envelope import encode_report

FACTS = HostFacts(
    cpu=Cpu(cores=2, quota=float(UNLIMITED), flags=(), sources={"cores": "sched_getaffinity"}),
    system=System(stack=Limit(soft=8 << 20, hard=UNLIMITED)),
    disks=(),
    variables=(Variable(name="CC", value="gcc-12", group="compiler"),),
)


def test_what_was_written_is_read_back() -> None:
    data = msgspec.json.encode(FACTS)
    assert decode_facts(data, file="host.json") == FACTS
    assert decode_facts(encode_report("facts", FACTS).encode(), file="host.json") == FACTS


def test_not_known_differs_from_none_there() -> None:
    read = decode_facts(msgspec.json.encode(FACTS), file="host.json")
    assert (read.cpu.flags, read.disks) == ((), ())
    assert (read.cpu.model, read.toolchain.compilers) == (None, None)


def test_fields_of_newer_versions_are_passed_over() -> None:
    assert decode_facts(b'{"schema": 1, "weather": 3, "cpu": {"cores": 4, "colour": "red"}}', file="x").cpu.cores == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file does not contain host facts"),
        (b"\xff\xfe", "the file does not contain host facts"),
        (b"[]", "the file does not contain host facts"),
        (b'{"cpu": {}}', "the file does not contain host facts"),
        (b"taken 2026-11-29T01:40:33Z by axletree 0.1.0\n", "it is not a JSON object"),
        (b'{"schema": 1, "command": "plan", "version": "1", "result": {"recipe": "x"}}', "report from `axletree plan`"),
        (b'{"schema": 1, "cpu": {"cores": "two"}}', "cpu.cores"),
        (b'{"schema": 99}', "has format 99, which a newer version of Axletree wrote"),
    ],
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        decode_facts(data, file="host.json")
    assert "host.json" in str(caught.value)


def test_a_variable_is_found_by_name() -> None:
    assert FACTS.variable("CC") == "gcc-12"
    assert FACTS.variable("CXX") is None
    assert HostFacts().variable("CC") is None
