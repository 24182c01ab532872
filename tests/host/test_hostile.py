"""No command opens an archive that was made to harm: each refuses it, names the member, and writes nothing."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from axletree.cli.main import cli, main
from support.hostile import NAME, hostile_wheels

KINDS = hostile_wheels()
COMMANDS = {
    "unpack": ["--out", "{out}"],
    "retag": ["--platform", "any", "--local", "x", "--out", "{out}"],
    "repair": ["--out", "{out}"],
    "thin": ["--arch", "90", "--out", "{out}"],
    "split": ["--rules", "{rules}", "--out", "{out}"],
    "sizes": [],
}


@pytest.fixture(params=KINDS)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    data, named = KINDS[request.param]
    path = tmp_path / "in" / NAME
    path.parent.mkdir()
    path.write_bytes(data)
    return path, named


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and path.name != ".axletree.lock"}


def test_the_audit_has_a_finding_that_names_the_member(hostile: tuple[Path, str]) -> None:
    path, named = hostile
    done = CliRunner().invoke(cli, ["audit", "--json", "--hashes", str(path)], standalone_mode=False)
    assert done.return_value == 1
    findings = json.loads(done.output)["result"]["files"][0]["findings"]
    told = [finding for finding in findings if finding["severity"] == "error"]
    assert {finding["rule"] for finding in told} == {"archive/refused"}
    assert named in " ".join(f"{finding['where']} {finding['message']}" for finding in told)


@pytest.mark.parametrize("command", COMMANDS)
def test_other_commands_refuse_it_and_write_nothing(
    hostile: tuple[Path, str], command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, named = hostile
    rules = tmp_path / "rules.toml"
    rules.write_text('name = "demo"\nlabel = "x"\n[[package]]\nname = "demo"\n[[rule]]\nto = "demo"\nfiles = ["**"]\n')
    before = files(tmp_path)
    options = [option.format(out=tmp_path / "out", rules=rules) for option in COMMANDS[command]]
    with pytest.raises(SystemExit) as caught:
        main([command, str(path), *options])
    told = capsys.readouterr().err
    assert caught.value.code == 2, told
    assert named in told or "the file contains no GPU code to thin" in told  # decided before any content is read
    assert "Traceback" not in told
    assert files(tmp_path) == before
