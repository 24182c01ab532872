"""What compilers, linkers and loaders print, and what follows from it."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from axletree.check.engine import Rule, apply_rules
from axletree.check.rules.search_order import ENVIRONMENT_RULES
from axletree.core.errors import RecipeError
from axletree.environment.delta import Order
from axletree.environment.description import Description, InstalledPackage
from axletree.environment.export import exported
from axletree.environment.gcc import headers_entered, headers_read, library_folders, name_in, search_lists
from axletree.environment.layers import Layer, cuda_layer, deltas_of, order_of, ordered, rocm_layer, setting
from axletree.environment.linker import libraries_linked
from axletree.environment.loader import (
    libraries_cached,
    libraries_loaded,
    libraries_mapped,
    refused_file,
    why_not_started,
)
from axletree.environment.verify import inversions, merged
from support.recipes import SMALL, recipe_of

HIPCC = """\
ignoring nonexistent directory "/include"
ignoring duplicate directory "/opt/rocm/include"
  as it is a non-system directory that duplicates a system directory
ignoring duplicate directory "/usr/include"
#include "..." search starts here:
 quoted
#include <...> search starts here:
 /env/include
 /opt/rocm/include
 /usr/include
End of search list.
. /env/include/hip/hip_version.h
.. /usr/include/features.h
... a word
not a header
"""


def test_search_list_of_hipcc() -> None:
    (found,) = search_lists(HIPCC)
    assert found.quote == ("quoted",)
    assert found.angle == ("/env/include", "/opt/rocm/include", "/usr/include")
    assert found.moved == ("/opt/rocm/include",)
    assert found.absent == ("/include",)


def test_passes_are_told_apart() -> None:
    first, second = search_lists(HIPCC + HIPCC.replace("/env", "/other"))
    assert (first.angle[0], second.angle[0]) == ("/env/include", "/other/include")
    assert second.moved == first.moved


def test_a_list_that_breaks_off_is_none() -> None:
    assert search_lists(HIPCC.partition("End of")[0]) == ()


def test_headers() -> None:
    assert [(each.depth, each.path) for each in headers_read(HIPCC)] == [
        (1, "/env/include/hip/hip_version.h"),
        (2, "/usr/include/features.h"),
        (3, "a word"),
    ]
    text = '# 1 "a.cpp"\n# 1 "/x/a b\\"c.h" 1 3\n# 2 "a.cpp" 2\n# 0 "<built-in>" 1\n# 1 "/x/d.h" 1\nint x;\n'
    assert headers_entered(text) == ('/x/a b"c.h', "/x/d.h")


def test_the_deepest_folder_names_a_header() -> None:
    folders = ("/usr/include", "/usr/include/x86_64-linux-gnu", "/")
    assert name_in("/usr/include/x86_64-linux-gnu/bits/types.h", folders) == (folders[1], "bits/types.h")
    assert name_in("/usr/includes/a.h", folders) == ("/", "usr/includes/a.h")
    assert name_in("rel/a.h", folders) is None


@pytest.mark.parametrize(
    ("text", "name", "path"),
    [
        ("/usr/lib/gcc/x/12/libstdc++.so\n", "libstdc++.so", "/usr/lib/gcc/x/12/libstdc++.so"),
        ("trace: /lib/libm.so.6\n", "libm.so.6", "/lib/libm.so.6"),
        ("/usr/bin/ld: /lib/libm.so.6\n", "libm.so.6", "/lib/libm.so.6"),
        ("(/usr/lib/libc_nonshared.a)atexit.oS\n", "libc_nonshared.a", "/usr/lib/libc_nonshared.a"),
        ("/with space/libx.a\n/with space/libx.a\n", "libx.a", "/with space/libx.a"),
    ],
)
def test_what_each_linker_prints(text: str, name: str, path: str) -> None:
    assert [(each.name, each.path) for each in libraries_linked(text)] == [(name, path)]


@pytest.mark.parametrize(
    "text", ["/usr/bin/ld: cannot find -lfoo\n", "crt1.o\n", "ld: warning: libx.so.1, needed by y.so\n"]
)
def test_what_is_no_library(text: str) -> None:
    assert libraries_linked(text) == ()


LOADER = """\
      7:\tfind library=libstdc++.so.6 [0]; searching
      7:\t search path=/old/tls:/old\t\t(LD_LIBRARY_PATH)
      7:\t  trying file=/old/tls/libstdc++.so.6
      7:\t  trying file=/old/libstdc++.so.6
      7:\t
      7:\tfind library=libc.so.6 [0]; searching
      7:\t search path=/old\t\t(LD_LIBRARY_PATH)
      7:\t  trying file=/old/libc.so.6
      7:\t search cache=/etc/ld.so.cache
      7:\t  trying file=/lib/libc.so.6
      7:\t
      7:\tcalling init: /lib64/ld-linux-x86-64.so.2
      7:\tcalling init: /pre/libhook.so
"""


def test_folders_of_drivers_and_the_loaders_cache() -> None:
    dirs = "install: /a/\nprograms: =/b/\nlibraries: =/lib/gcc/12/:/usr/lib/\n"
    assert library_folders(dirs) == ("/lib/gcc/12/", "/usr/lib/")
    assert library_folders("clang: error: unknown argument") is None
    listing = "2 libs found\n\tlibz.so.1 (libc6,x86-64) => /a/libz.so.1\n\tlibz.so.1 (libc6) => /b/libz.so.1\n"
    assert libraries_cached(listing) == (("libz.so.1", "/a/libz.so.1"), ("libz.so.1", "/b/libz.so.1"))


def test_what_the_loader_took() -> None:
    assert [(each.name, each.path, each.by) for each in libraries_loaded(LOADER)] == [
        ("libstdc++.so.6", "/old/libstdc++.so.6", "LD_LIBRARY_PATH"),
        ("libc.so.6", "/lib/libc.so.6", "cache"),
        ("libhook.so", "/pre/libhook.so", "LD_PRELOAD"),
    ]


def test_maps_and_refusals() -> None:
    maps = "7f00-7f01 r-xp 00000000 fe:00 123   /lib/a b.so.1\n7f01-7f02 rw-p 00000000 00:00 0 [heap]\n"
    assert libraries_mapped(maps * 2) == ("/lib/a b.so.1",)
    words = "./a: /old/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by ./a)"
    assert why_not_started(f"noise\n{words}\n") == words
    assert refused_file(words) == "/old/libstdc++.so.6"
    missing = "./a: error while loading shared libraries: libx.so.1: cannot open shared object file: No such file"
    assert why_not_started(missing) == missing
    assert refused_file(missing) is None


def test_orders_that_differ() -> None:
    expected = merged(["/rocm", "/env"], ["/rocm", "/usr"])
    assert expected == ("/rocm", "/env", "/usr")
    assert list(inversions(expected, ["/env", "/rocm", "/usr"])) == [("/env", "/rocm")]
    assert list(inversions(expected, ["/alien", *expected])) == [("/alien", each) for each in expected]
    assert not list(inversions(expected, expected))


CONDA = Layer(
    origin="conda", bin=("/c/bin",), include=("/c/include",), link=("/c/lib",), run=("/c/lib",), cmake=("/c",)
)


def test_rocm_goes_before_the_environment_and_cuda_behind() -> None:
    rocm = rocm_layer("/opt/rocm", clang="/opt/rocm/llvm/bin", device=None, lib=["/opt/rocm/lib"], origin="ROCm")
    cuda = cuda_layer(
        "/cuda", include=["/cuda/include"], link=["/cuda/lib", "/cuda/stubs"], run=["/cuda/lib"], origin="C"
    )
    order = order_of(ordered([CONDA], rocm, "rocm"))
    assert [entry.path for entry in order.include] == ["/opt/rocm/include", "/c/include"]
    assert [entry.path for entry in order.run] == ["/opt/rocm/lib", "/c/lib"]
    order = order_of(ordered([CONDA], cuda, "cuda"))
    assert [entry.path for entry in order.link] == ["/c/lib", "/cuda/lib", "/cuda/stubs"]
    assert [entry.path for entry in order.run] == ["/c/lib", "/cuda/lib"]


def test_deltas_give_the_order_and_leave_the_systems_folders_out() -> None:
    system = Layer(origin="usr", bin=("/usr/bin",), include=("/usr/include",), link=("/usr/lib",), run=("/usr/lib",))
    layers = ordered([CONDA, system], Layer(origin="gpu", bin=("/g/bin",), include=("/g/include",)), "rocm")
    order = order_of(layers)
    values: dict[str, str] = {}
    for each in deltas_of(layers, order):
        values[each.variable] = f"{each.value}:{values[each.variable]}" if each.variable in values else each.value
    assert values == {
        "PATH": "/g/bin:/c/bin",
        "CPATH": "/g/include:/c/include",
        "LIBRARY_PATH": "/c/lib",
        "LD_LIBRARY_PATH": "/c/lib",
        "LDFLAGS": "-L/c/lib",
        "CMAKE_PREFIX_PATH": "/c",
    }


@pytest.mark.parametrize("rule", ENVIRONMENT_RULES, ids=lambda rule: rule.id)
def test_each_rule_fires_in_its_cases_and_in_no_other(rule: Rule[Any]) -> None:
    for case in rule.cases():
        assert bool(apply_rules([rule], case.facts)) == case.fires, case.title
    assert {case.fires for case in rule.cases()} == {True, False}


def description(provider: Any = "conda", **changes: Any) -> Description:
    fields: dict[str, Any] = {
        "folder": "/e",
        "recipe": "r.toml",
        "variant": "py311-cu130",
        "name": "dev",
        "provider": provider,
        "python": "3.11",
        "requires": ("cmake >=3.27,<4", "libblas * *mkl", "forge::zlib"),
        "channels": ("conda-forge", "file:///c"),
        "packages": (InstalledPackage(name="cmake", version="3.31.2", build="h_0"),),
        "order": Order(),
        "deltas": (
            setting("ROCM_PATH", "/opt/rocm", "ROCm"),
            setting("CONDA_PREFIX", "/e/prefix", "conda"),
            setting("CC", "/usr/bin/cc", "activate.d/x.sh"),
        ),
    }
    return Description(**(fields | changes))


def test_environment_yml() -> None:
    text = exported(description(), "environment.yml", platform="linux-64")
    assert 'channels:\n  - conda-forge\n  - "file:///c"\ndependencies:\n  - cmake=3.31.2=h_0\n' in text
    assert 'variables:\n  ROCM_PATH: "/opt/rocm"\n' in text
    assert "CONDA_PREFIX" not in text
    assert "CC" not in text
    loose = exported(description(), "environment.yml", platform="linux-64", locked=False)
    assert f"  - {json.dumps('cmake >=3.27,<4')}\n" in loose


def test_environment_yml_of_wheels() -> None:
    wheels = (InstalledPackage(name="numpy", version="2.3.1"),)
    text = exported(description("venv", packages=wheels, channels=()), "environment.yml", platform="linux-64")
    assert "dependencies:\n  - python=3.11\n  - pip\n  - pip:\n    - numpy==2.3.1\n" in text


def test_pixi_toml() -> None:
    document = tomllib.loads(exported(description(), "pixi.toml", platform="linux-64"))
    assert document["workspace"]["platforms"] == ["linux-64"]
    assert document["dependencies"] == {"cmake": {"version": "==3.31.2", "build": "h_0"}}
    assert document["activation"]["env"] == {"ROCM_PATH": "/opt/rocm"}
    loose = tomllib.loads(exported(description(), "pixi.toml", platform="linux-64", locked=False))
    expected = {"cmake": ">=3.27,<4", "libblas": {"version": "*", "build": "*mkl"}, "python": "3.11.*"}
    expected["zlib"] = {"version": "*", "channel": "forge"}
    assert loose["dependencies"] == expected
    venv = description("venv", requires=("a[x]>=1", "b.c"), packages=(), channels=())
    wheels = tomllib.loads(exported(venv, "pixi.toml", platform="linux-64", locked=False))
    assert wheels["dependencies"] == {"python": "3.11.*"}
    assert wheels["pypi-dependencies"] == {"a": {"version": ">=1", "extras": ["x"]}, "b.c": "*"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('provider = "conda"', "needs channels"),
        ('channels = ["x"]', "provider 'venv' does not use channels"),
        ('provider = "system"\nrequires = ["x"]', "uses the host as it is"),
        ('provider = "conda"\nchannels = ["x"]\ntoolkit = "{nope}"', "nope"),
        ('provider = "docker"', "provider"),
    ],
)
def test_what_a_provider_does_not_have_is_told(keys: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        recipe_of(f'{SMALL}\n[environments.other]\naxes = ["gpu"]\npython = "3.11"\n{keys}\n')


def test_stages_and_tests_need_an_environment_that_is_installed() -> None:
    text = SMALL.replace('requires = ["setuptools"]', 'provider = "system"')
    with pytest.raises(RecipeError) as caught:
        recipe_of(text)
    assert [problem.key for problem in caught.value.problems] == ["stages.bind.environment", "tests.smoke.environment"]
