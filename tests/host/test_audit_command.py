"""``axletree audit`` on wheels on disk: made ones, and the real ones that this machine has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.audit import audit_wheel
from axletree.cli.audit import command
from axletree.core.errors import AxletreeError, HostError, IntegrityError, UsageError
from axletree.host.policies import read_policies
from support.wheels import demo_metadata, local_wheels, make_elf, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = re.compile(r"[\d.]+ kB")
TAG = "cp311-cp311-manylinux_2_17_x86_64"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """An extension that needs the libraries of a distribution that it requires."""
    core = make_elf(
        needed=("libbase.so.2", "libstdc++.so.6", "libc.so.6"),
        needs={"libc.so.6": ("GLIBC_2.14",), "libstdc++.so.6": ("GLIBCXX_3.4.9",)},
        undefined=("PyModule_Create2",),
        exported=("PyInit__core",),
        runpath="$ORIGIN",
    )
    files = {"demo/__init__.py": b"", "demo/_core.cpython-311-x86_64-linux-gnu.so": core}
    path = tmp_path / f"demo-1.0-{TAG}.whl"
    path.write_bytes(wheel_bytes(files, tag=TAG, metadata=demo_metadata(requires=("base==2.13.0",))))
    return path


def run(*arguments: str | Path) -> tuple[int, str]:
    """Exit code and output; an error of the tool counts as its exit code."""
    done = CliRunner().invoke(command, [str(argument) for argument in arguments], standalone_mode=False)
    if isinstance(done.exception, AxletreeError):
        return done.exception.exit_code, str(done.exception)
    if done.exception is not None:
        raise done.exception
    return done.return_value, SIZE.sub("SIZE", done.output)  # the size depends on the version of zlib


def test_a_good_wheel(wheel: Path, golden: Callable[[str, str], None]) -> None:
    code, output = run(wheel, "--provided-by", "base=libbase*.so.*", "--glibc", "2.28")
    assert code == 0
    golden("audit/good.txt", output)


def test_errors_make_exit_code_1(wheel: Path, golden: Callable[[str, str], None]) -> None:
    code, output = run(wheel, "--glibc", "2.12")
    assert code == 1
    golden("audit/bad.txt", output)


def test_json_is_one_object_a_line(wheel: Path) -> None:
    code, output = run(wheel, wheel, "--json")
    assert code == 1
    reports = [json.loads(line) for line in output.splitlines()]
    assert len(reports) == 2
    assert reports[0]["schema"] == 2
    assert reports[0]["file"] == wheel.name
    assert [finding["rule"] for finding in reports[0]["findings"]] == ["dist/needed-unresolved"]


def test_bad_usage(wheel: Path) -> None:
    code, message = run(wheel, "--provided-by", "torch")
    assert code == UsageError.exit_code
    assert message.startswith("--provided-by: 'torch' is not of the form DIST=PATTERN\n  hint: for example")
    assert run(wheel, "--glibc", "new")[0] == UsageError.exit_code


def test_what_is_no_wheel(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    with pytest.raises(HostError, match="can't be read"):
        audit_wheel(path)
    path.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(IntegrityError, match="no ZIP archive, or cut off"):
        audit_wheel(path)


def test_auditwheels_policies_can_be_read() -> None:
    policies = read_policies()
    names = [policy.name for policy in policies]
    assert names.index("manylinux_2_17") < names.index("manylinux_2_28")
    assert "libstdc++.so.6" in policies[0].libraries


def test_the_official_cpu_build_of_torch() -> None:
    wheels = local_wheels("torch-2.*+cpu-cp311-cp311-manylinux_2_28_x86_64.whl")
    if not wheels:
        pytest.skip("no CPU build of torch in pip's find-links")
    report = audit_wheel(wheels[-1])
    assert report.elf_files > 10
    assert report.floors == {"x86_64": "manylinux_2_28_x86_64"}
    assert {need.owner for need in report.needs} == {"wheel", "system"}
    rules = {finding.rule for finding in report.findings}
    assert not rules & {"dist/record-wrong", "dist/needed-unresolved", "dist/glibc-above-tag", "dist/tags-mismatch"}
