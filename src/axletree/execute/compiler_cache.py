"""ccache in front of the compilers of a stage, and what it did.

C and C++ compilers get it by a folder of links named like them, first on PATH: that works for every build system. nvcc
can't be found there, since where it lies tells PyTorch and others where the CUDA toolkit is. So whoever calls it is
told a launcher: CMake and PyTorch by their variables, and others by ``NVCC``, if the stage declares nvcc. HIP compilers
are not: whether ccache sees all that they read was never tried.

The cache cannot change a result, so it is in no key: none of this may lead to another compiler than without it.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.buildsystem.ccache import CacheUse, read_stats_log
from axletree.check.engine import apply_rules
from axletree.check.rules.compiling import COMPILING_RULES, Compiling
from axletree.core.records import CacheCounts
from axletree.core.values import canonical_json, digest_of
from axletree.disk import part_folder
from axletree.host.files import replace_file
from axletree.host.tools import find_programs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.execute.context import Context
    from axletree.store.store import Store

_SIZE = "10G"
"""Of the compiler cache: what was not used for longest goes."""
_LINKED = ("cc", "c++", "gcc", "g++", "clang", "clang++")
_STATS = "ccache.log"
_LAUNCHER = """\
#!/bin/sh
# LAUNCHER NVCC ARGUMENT...: calls nvcc through ccache, in a way in which no call gets the object of another one.
#
# ccache (4.14) preprocesses once, as for one GPU. Code and headers of the host, or of another GPU, it does not see, and
# gives an old object when they change. So it works in its depend mode, by what nvcc itself says that it has read (-MD).
# It takes calls for the same that are not: -c and -dc, with and without "-Xcompiler -fPIC", with other flags in
# NVCC_APPEND_FLAGS. So all words that name no file are hashed once more, by a namespace. Which nvcc it is tells its
# version, with the number of its build: the file is often a script, and only one of several programs.
ccache='@CCACHE@' links='@LINKS@'

note() { # a word that makes another result, unless it is a path: those ccache knows by their content
  case $before,$1 in
  -X*,*-prefix-map=*) ;;
  -X*,* | --*-options,*) words="$words $1" ;;
  *,*/*) ;;
  *) words="$words $1" ;;
  esac
  case $before,$1 in
  *,-arch=native | *,--gpu-architecture=native) why=depends_on_the_gpu ;;
  -arch,native | --gpu-architecture,native) why=depends_on_the_gpu ;;
  *,-keep | *,--keep | *,-keep-dir | *,--keep-dir | *,-time | *,--time) why=unsupported_compiler_option ;;
  *,-MMD | *,--generate-nonsystem-dependencies-with-compile) why=unsupported_compiler_option ;;
  *,-MD | *,--generate-dependencies-with-compile) lists=1 ;;
  *,-c | *,-dc | *,-dw | *,--compile | *,--device-c | *,--device-w) compiles=1 ;;
  *,*.cu) source=$1 ;;
  esac
  before=$1
}

# The host compiler is called by nvcc, whose result is cached: not once more through the links.
path=:$PATH:
case $path in *":$links:"*) path=${path%%":$links:"*}:${path#*":$links:"} ;; esac
path=${path#:} PATH=${path%:}
export PATH
case ${1##*/} in nvcc*) why='' ;; *) why=not_tried_with_this_compiler ;; esac
words="$NVCC_PREPEND_FLAGS|$NVCC_APPEND_FLAGS|$NVCC_CCBIN|" before='' source='' lists='' compiles='' count=$# first=1
while [ "$count" -gt 0 ]; do
  word=$1 count=$((count - 1))
  shift
  case $word in
  "$links"/*) real=$(command -v "${word##*/}") && word=$real ;;
  -*="$links"/*) real=$(command -v "${word##*/}") && word=${word%%=*}=$real ;;
  esac
  case $before,$word in
  -optf,* | --options-file,* | *,-optf=* | *,--options-file=*)
    set -f
    before=''
    for inner in $(cat "${word#-*=}"); do note "$inner"; done
    set +f
    ;;
  *) [ -n "$first" ] || note "$word" ;;
  esac
  set -- "$@" "$word"
  first=''
done
[ -n "$compiles$why" ] || exec "$@"
sum=$(printf %s "$words" | sha256sum) || why=internal_error
if [ -n "$why" ]; then # past the cache; counted as ccache does it
  [ -z "$CCACHE_STATSLOG" ] || printf '# %s\\n%s\\n' "$source" "$why" >> "$CCACHE_STATSLOG"
  exec "$@"
fi
export CCACHE_DEPEND=1 CCACHE_NAMESPACE="$CCACHE_NAMESPACE ${sum%% *}" CCACHE_COMPILERCHECK='%compiler% --version'
[ -z "$lists" ] || exec "$ccache" "$@"
"$ccache" "$@" -MD -MF "${TMPDIR:-/tmp}/nvcc.$$.d"
code=$?
rm -f "${TMPDIR:-/tmp}/nvcc.$$.d"
exit $code
"""
_NVCC = """\
#!/bin/sh
# The nvcc that the stage declares, through ccache.
exec '@LAUNCHER@' '@NVCC@' "$@"
"""


def link_folders(store: Store) -> Path:
    """Where folders of links to programs lie."""
    return store.cache / "tools"


def put_in_front(context: Context, env: dict[str, str], root: Path, *, rest: Iterable[str]) -> list[str]:
    """Put ccache in front of the C and C++ compilers on the rest of PATH; what belongs first on PATH.

    Args:
        context: the stage's surroundings.
        env: the stage's variables; gets those of ccache.
        root: folder of the sources that are compiled.
        rest: the folders behind on PATH.
    """
    ccache = context.request.local.ccache
    if ccache is None:
        return []
    # A link for a compiler that is not there would be found by those who only look whether it is.
    found = find_programs(_LINKED, os.pathsep.join(rest), but_for=frozenset({"ccache"}))
    if not found:
        return []
    env["CCACHE_DIR"] = str(context.store.cache / "ccache")
    env["CCACHE_MAXSIZE"] = _SIZE
    env["CCACHE_STATSLOG"] = str(context.work / _STATS)
    if root == context.work:
        # The folder is another one for each key. Not in a kept workspace: there make reads the dependency files, and
        # would not know its targets by the relative paths that ccache writes into them.
        env["CCACHE_BASEDIR"] = str(root)
    env["CCACHE_COMPILERCHECK"] = "content"
    env["CCACHE_NOHASHDIR"] = "1"
    env["TORCH_NO_COMPILER_WRAPPER"] = "1"  # PyTorch puts ccache in front by itself, a second time
    return [str(_links(context.store, tuple(sorted(found)), ccache))]


def tell_launchers(context: Context, env: dict[str, str], links: list[str]) -> None:
    """Tell those who call nvcc to do it through ccache, unless the recipe has told them otherwise.

    Args:
        context: the stage's surroundings.
        env: the stage's variables, with PATH and those of the recipe.
        links: what :func:`put_in_front` returned.
    """
    declared = context.request.local.tools.get("nvcc")
    if declared is not None:
        env.setdefault("NVCC", declared)  # without the cache too: it must not decide which nvcc is called
    if not links:
        return
    launcher = str(_launcher(context, links[0]))
    nvcc = _pytorchs_nvcc(env)
    if nvcc is not None or env.get("CUDACXX"):
        env.setdefault("CMAKE_CUDA_COMPILER_LAUNCHER", launcher)
    if nvcc is not None:
        env.setdefault("PYTORCH_NVCC", f"{launcher} {nvcc}")
    if declared is not None and env["NVCC"] == declared:
        env["NVCC"] = str(_script(context.store, "nvcc", _NVCC, LAUNCHER=launcher, NVCC=declared))


def note_use(context: Context) -> None:
    """Say in the log and the record what came from the cache, and find what should have and did not."""
    with suppress(FileNotFoundError):
        text = (context.work / _STATS).read_text(encoding="utf-8", errors="replace")
        use = read_stats_log(text)
        if use == CacheUse():
            return
        context.log.say(str(use))
        refused = {why: len(files) for why, files in use.refused.items()}
        context.notes.cache_use = CacheCounts(hits=use.hits, misses=use.misses, refused=refused)
        facts = Compiling(stage=context.request.stage, use=use, expected=context.notes.cache_expected)
        context.notes.findings.extend(apply_rules(COMPILING_RULES, facts))


def _pytorchs_nvcc(env: dict[str, str]) -> str | None:
    """The nvcc that ``torch.utils.cpp_extension`` takes: that of the toolkit which it finds (releases up to 2.13)."""
    home = env.get("CUDA_HOME") or env.get("CUDA_PATH")
    found = shutil.which("nvcc", path=env["PATH"])
    if home is None:
        home = os.path.dirname(os.path.dirname(found)) if found is not None else "/usr/local/cuda"  # noqa: PTH120
    nvcc = Path(home) / "bin" / "nvcc"
    return str(nvcc) if os.access(nvcc, os.X_OK) else None


def _links(store: Store, names: tuple[str, ...], ccache: str) -> Path:
    """A folder of links to ccache at a path that does not tell where ccache is.

    Build folders that are kept hold the compiler's path in each command: with ccache somewhere else, which changes
    nothing of what is compiled, everything would be compiled again.
    """
    folder = link_folders(store) / f"ccache-{digest_of(canonical_json(list(names)))[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        link = folder / name
        if not link.is_symlink() or os.readlink(link) != ccache:  # noqa: PTH115 (as it is written)
            with part_folder(folder) as beside:  # not within: the folder is on PATH
                fresh = beside / name
                fresh.symlink_to(ccache)
                fresh.replace(link)
    return folder


def _launcher(context: Context, links: str) -> Path:
    assert context.request.local.ccache is not None  # noqa: S101 (there are links to it)
    ccache = _links(context.store, ("ccache",), context.request.local.ccache) / "ccache"
    return _script(context.store, "launch", _LAUNCHER, CCACHE=str(ccache), LINKS=links)


def _script(store: Store, name: str, text: str, **values: str) -> Path:
    """A script in a folder of its own, at a path that follows from what is in it."""
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    script = link_folders(store) / f"{name}-{digest_of(text.encode())[:16]}" / name
    if not script.exists():
        replace_file(script, text.encode(), mode=0o755)
    return script
