"""Work is done once: a library for several Pythons, whoever asks for it, in one build or in several."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from support.envelopes import result_of
from support.tiny import Tiny, copied, make_tiny, need_pythons, prepared_tiny, short, wheel_digests

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tiny")]


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return prepared_tiny(tmp_path_factory)


@pytest.fixture
def tiny(base: Tiny, tmp_path: Path) -> Tiny:
    return copied(base, tmp_path)


def results(tiny: Tiny) -> Counter[str]:
    """How many results the store has of each stage, by the stage that made them."""
    records = (json.loads(path.read_text()) for path in (tiny.store / "results").glob("*/*.json"))
    return Counter(short(record["stage"]) for record in records)


def test_one_library_serves_two_bindings(base: Tiny) -> None:
    plan = base.plan()
    compiled = [name for name, row in plan.items() if row["action"] == "run"]
    assert compiled == ["lib", "bind[A]", "bind[B]"]
    assert len(plan["lib"]["variants"]) == 2
    assert [len(plan[f"bind[{letter}]"]["variants"]) for letter in "AB"] == [1, 1]
    assert {name: results(base)[name] for name in compiled} == {"lib": 1, "bind[A]": 1, "bind[B]": 1}
    assert len(plan["pack:libtiny"]["variants"]) == 2
    assert set(results(base).values()) == {1}
    names = sorted(name.partition("-")[0] for name in wheel_digests(base.out))
    assert names == ["libtiny", "tiny", "tiny"]


def test_the_wheels_work_together_when_pip_and_uv_install_them(tiny: Tiny) -> None:
    tiny.change('installers = ["uv"]', 'installers = ["uv", "pip"]')
    run = tiny.built()
    assert run.stages("done") == {"test:smoke:pip[A]", "test:smoke:pip[B]"}
    assert run.stages("cached") >= {"test:smoke:uv[A]", "test:smoke:uv[B]"}


def test_a_third_python_shares_the_library_too(tiny: Tiny) -> None:
    third = need_pythons(3)[2]
    tiny.change(f'"{tiny.versions[1]}"]', f'"{tiny.versions[1]}", "{third}"]')
    tiny.lock(third)
    run = tiny.built()
    assert {name.partition("[")[2] for name in run.stages("done")} == {"C]"}
    assert results(tiny)["lib"] == 1
    assert len(tiny.plan()["lib"]["variants"]) == 3


def test_a_library_that_sees_an_axis_is_built_for_each_value_and_not_for_each_variant(tiny: Tiny) -> None:
    tiny.change('exclude = [{ blas = "openblas" }]', "")
    tiny.change('prefix = "libtiny"', 'prefix = "libtiny"\nlocal = "{blas}"')
    tiny.change("provided-by", 'local = "{blas}"\nprovided-by')
    done = tiny.call("plan", str(tiny.recipe), "--json")
    stages = [row["stage"] for row in result_of(done.stdout)["stages"]]
    compiled = Counter(stage.partition("[")[0] for stage in stages)
    assert (compiled["lib"], compiled["bind"], compiled["environment:bind"]) == (2, 4, 2)


@pytest.mark.proof
def test_workspaces_may_be_deleted_between_stages(base: Tiny, tmp_path: Path) -> None:
    """After an edit: once with the workspaces of the build before, once without any, also between its stages."""
    kept = copied(base, tmp_path / "kept")
    kept.recipe.write_text(kept.recipe.read_text().replace("$TMPDIR", "$AXLETREE_WORKSPACE"))
    kept.recipe.write_text(kept.recipe.read_text().replace('tools = ["c++"]', 'tools = ["c++"]\nworkspace = true'))
    kept.built()
    assert len(list((kept.store / "workspaces").iterdir())) == 3
    deleted = copied(kept, tmp_path / "deleted")
    for tiny in (kept, deleted):
        shutil.rmtree(tiny.out, ignore_errors=True)
        tiny.edit("src/tiny.cpp", "}\n", '}\nextern "C" int tiny_more() { return 1; }\n')
        tiny.edit("src/bind.cpp", "The answer.", "Another answer.")
    whole = kept.built()
    parts = []
    for version in deleted.versions:
        shutil.rmtree(deleted.store / "workspaces")
        parts.append(deleted.built("--variant", f"py{version.replace('.', '')}*"))
    assert "lib" in parts[0].stages("done")
    assert "bind[B]" in parts[1].stages("done")
    assert "lib" in parts[1].stages("cached")
    assert {**parts[0].trees, **parts[1].trees} == whole.trees
    assert wheel_digests(deleted.out) == wheel_digests(kept.out)


POISON = "for f in $VIRTUAL_ENV/lib/*/site-packages/demo/*.py; do chmod u+w $f; echo '# poison' >> $f; done || true"


def test_a_stage_cannot_change_what_others_get(tiny: Tiny) -> None:
    """Neither the environment that it shares with them, nor the files that are linked into all environments."""
    tiny.change('environment = "bind"\n', 'environment = "test"\n')
    tiny.change('  "mkdir $AXLETREE_OUT/tiny",\n', f'  "{POISON}",\n  "mkdir $AXLETREE_OUT/tiny",\n')
    tiny.change('commands = ["python check.py"]', f'commands = ["{POISON}", "python check.py"]')
    run = tiny.built()
    assert {"bind[A]", "bind[B]", "test:smoke:uv[A]"} <= run.stages("done")
    cached = [path for path in (tiny.store / "cache" / "uv").rglob("demo/__init__.py") if "poison" in path.read_text()]
    assert not cached
    granted = (
        "from axletree.host.sandbox import run_isolated; run_isolated(lambda it: print(it.mounts) or 0, network=False)"
    )
    answer = subprocess.run([sys.executable, "-c", granted], capture_output=True, text=True, check=True).stdout
    if answer != "True\n":
        pytest.skip("this system does not let folders be read-only for one stage")
    shared = [path for path in (tiny.store / "environments").rglob("demo/*.py") if "poison" in path.read_text()]
    assert not shared


def test_what_gc_removes_is_gone_from_uvs_cache_too(tmp_path: Path) -> None:
    """There it has other names, and would take its room for ever."""
    tiny = make_tiny(tmp_path, need_pythons())  # not a copy: uv's cache goes by absolute paths
    tiny.built()
    shelf = tiny.store / "cache" / "uv-wheels"
    assert list(shelf.glob("*/demo-*.whl"))
    done = tiny.call("store", "gc", "--keep", "0", "--grace", "0")
    assert done.returncode == 0, done.stderr
    assert not list(shelf.glob("*/*"))
    assert not list((tiny.store / "cache" / "uv").rglob("__init__.py"))
    tiny.built()
