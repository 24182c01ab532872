"""Thin the installed torch to one GPU architecture and see that its operators still work, on a real GPU.

``PYTHONPATH=src python benchmarks/gpu_thin_check.py --right 90 --wrong 80 [--out REPORT.json]``, on a machine with a
GPU, the official torch with CUDA, and msgspec; nothing else of Axletree's dependencies is needed.

``libtorch_cuda.so`` and its ``_linalg`` and ``_nvshmem`` siblings are thinned by the edits that Axletree's own code
makes there, and given back afterwards, whatever happens. Each operator then runs on the GPU and is compared with its
result on the CPU. All must agree as the library came, and thinned to ``--right``; thinned to ``--wrong``, an
architecture that the GPU does not run, all must fail with "no kernel image", but for those that can do with kernels of
NVIDIA's libraries alone.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

LIBRARIES = ("libtorch_cuda.so", "libtorch_cuda_linalg.so", "libtorch_nvshmem.so")

ELSEWHERE = frozenset({"matmul", "bmm", "half_matmul", "linear", "conv2d", "batch_norm", "fft", "cholesky", "solve"})
"""Operators whose kernels lie in cuBLAS, cuDNN, cuFFT or cuSOLVER, so that torch's own may not be needed."""

CHECKS = """
import json, sys
import torch
import torch.nn.functional as F

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
x, y = torch.randn(128, 96), torch.randn(96, 64)
image, filters = torch.randn(2, 3, 32, 32), torch.randn(8, 3, 3, 3)
heads = torch.randn(2, 4, 32, 16)
index = torch.randint(0, 128, (64,))
table = torch.randn(50, 16)
square = torch.randn(32, 32)
positive = square @ square.T + 32 * torch.eye(32)
half = torch.randn(64, 64).half()

CHECKS = {
    "add": lambda t: t(x) + 1.5,
    "multiply": lambda t: t(x) * t(x),
    "exp": lambda t: torch.exp(t(x)),
    "gelu": lambda t: F.gelu(t(x)),
    "where": lambda t: torch.where(t(x) > 0, t(x), -t(x)),
    "sum": lambda t: t(x).sum(0),
    "mean": lambda t: t(x).mean(1),
    "max": lambda t: t(x).max(1).values,
    "argmax": lambda t: t(x).argmax(1),
    "norm": lambda t: torch.linalg.vector_norm(t(x), dim=1),
    "matmul": lambda t: t(x) @ t(y),
    "bmm": lambda t: torch.bmm(t(heads[0]), t(heads[1]).transpose(1, 2)),
    "half_matmul": lambda t: (t(half) @ t(half)).float(),
    "linear": lambda t: F.linear(t(x), t(y).T),
    "conv2d": lambda t: F.conv2d(t(image), t(filters), padding=1),
    "max_pool2d": lambda t: F.max_pool2d(t(image), 2),
    "interpolate": lambda t: F.interpolate(t(image), scale_factor=2, mode="bilinear"),
    "batch_norm": lambda t: F.batch_norm(t(image), t(torch.zeros(3)), t(torch.ones(3))),
    "layer_norm": lambda t: F.layer_norm(t(x), (96,)),
    "softmax": lambda t: torch.softmax(t(x), 1),
    "log_softmax": lambda t: F.log_softmax(t(x), 1),
    "cross_entropy": lambda t: F.cross_entropy(t(x), t(torch.arange(128) % 96)),
    "attention": lambda t: F.scaled_dot_product_attention(t(heads), t(heads), t(heads)),
    "embedding": lambda t: F.embedding(t(index % 50), t(table)),
    "sort": lambda t: torch.sort(t(x), dim=1).values,
    "topk": lambda t: torch.topk(t(x), 5, dim=1).values,
    "cumsum": lambda t: torch.cumsum(t(x), 0),
    "index_select": lambda t: torch.index_select(t(x), 0, t(index)),
    "scatter_add": lambda t: torch.zeros(128, 96, device=t(x).device).scatter_add(
        0, t(index).unsqueeze(1).expand(64, 96), t(x)[:64]
    ),
    "cat": lambda t: torch.cat([t(x), t(x)], 1),
    "fft": lambda t: torch.view_as_real(torch.fft.rfft(t(x))),
    "cholesky": lambda t: torch.linalg.cholesky(t(positive)),
    "solve": lambda t: torch.linalg.solve(t(positive), t(square)),
    "unique": lambda t: torch.unique(t(index)),
    "random": lambda t: _random(t),
    "backward": lambda t: _backward(t),
}


def _random(t):
    values = torch.randn(100_000, device=t(x).device)
    return torch.stack([values.mean().abs() < 0.02, (values.std() - 1).abs() < 0.02])


def _backward(t):
    leaf = t(x).clone().requires_grad_()
    F.gelu(leaf @ t(y)).square().mean().backward()
    return leaf.grad


if sys.argv[1] == "names":
    print(json.dumps(list(CHECKS)))
    sys.exit()
result = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
for name in sys.argv[2:]:
    check = CHECKS[name]
    expected = check(lambda tensor: tensor)
    try:
        found = check(lambda tensor: tensor.cuda())
        torch.cuda.synchronize()
        torch.testing.assert_close(found.cpu(), expected, rtol=5e-3, atol=5e-3)
        result[name] = "ok"
    except Exception as error:
        result[name] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
print(json.dumps(result))
"""

EDITS = """
import sys, time
from pathlib import Path
from axletree.binary.gpu.scan import SECTIONS, Section, read_containers
from axletree.binary.edits import EditedSource, iter_source
from axletree.binary.elf.tables import Reader, read_layout
from axletree.host.sources import FileSource, write_source
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.thin import ThinRules, check_thinned, thin_file

source_path, target, arch = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]


def read(source):
    layout = read_layout(Reader(source, source_path.name))
    places = [Section(s.name.decode(), s.offset, s.size) for s in layout.sections if s.name.decode() in SECTIONS]
    return [read_containers(source, place) for place in places]


with FileSource(source_path) as source:
    started = time.perf_counter()
    thinned = thin_file(read(source), ThinRules(gpus=(parse_gpu(arch),)), name=source_path.name)
    seconds = time.perf_counter() - started
    edited = EditedSource(source, thinned.edits)
    write_source(target, iter_source(edited), like=source_path)
with FileSource(target) as again:
    check_thinned(read(again), thinned, name=target.name)
kept = sum(part.kept_size for part in thinned.archs)
print(f"{source_path.name}: decided in {seconds:.2f} s, {len(thinned.edits)} edits, keeps {kept / 1e6:.1f} MB, "
      f"zeroes {thinned.dropped / 1e6:.1f} MB")
"""


def main() -> int:
    """Run the three rounds; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--right", required=True, help="architecture of this machine's GPU")
    parser.add_argument("--wrong", required=True, help="one that it can't run")
    parser.add_argument("--out", type=Path, help="write all results as JSON")
    options = parser.parse_args()
    folder = find_libraries()
    backup = folder.with_name(f"{folder.name}.before-thinning")
    results: dict[str, dict[str, str]] = {}
    try:
        backup.mkdir(exist_ok=True)
        for name in LIBRARIES:
            if (folder / name).exists() and not (backup / name).exists():
                shutil.copy2(folder / name, backup / name)
        results["as it came"] = run_checks(apart=False)
        thin_all(backup, folder, options.right)
        results[f"thinned to {options.right}"] = run_checks(apart=False)
        thin_all(backup, folder, options.wrong)
        results[f"thinned to {options.wrong}"] = run_checks(apart=True)
    finally:
        for copy in backup.iterdir():
            copy.replace(folder / copy.name)
        backup.rmdir()
    return report(results, options.out)


def find_libraries() -> Path:
    """The folder of the installed torch's libraries, found without loading them."""
    code = "import importlib.util; print(importlib.util.find_spec('torch').submodule_search_locations[0])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return Path(found.stdout.strip()) / "lib"


def thin_all(source: Path, target: Path, arch: str) -> None:
    """Put thinned copies of the libraries in place of those that torch loads."""
    for path in sorted(source.iterdir()):
        subprocess.run([sys.executable, "-c", EDITS, str(path), str(target / path.name), arch], check=True)


def run_checks(*, apart: bool) -> dict[str, str]:
    """Name of each check -> ``ok`` or what went wrong.

    ``apart``: a process for each, as one failure can break those that follow.
    """
    names = json.loads(subprocess.check_output([sys.executable, "-c", CHECKS, "names"], text=True))
    groups = [[name] for name in names] if apart else [names]
    found: dict[str, str] = {}
    started = time.perf_counter()
    for group in groups:
        done = subprocess.run(
            [sys.executable, "-c", CHECKS, "run", *group], capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode == 0:
            found |= json.loads(done.stdout.splitlines()[-1])
        else:
            found |= dict.fromkeys(group, f"process failed ({done.returncode}): {done.stderr[-200:]}")
    print(f"{len(names)} checks in {time.perf_counter() - started:.0f} s", flush=True)
    return found


def report(results: dict[str, dict[str, str]], out: Path | None) -> int:
    """Print n of n for each round; 1 where a round was not as it must be."""
    failed = False
    for number, (title, found) in enumerate(results.items()):
        wanted = number < 2
        left_out = {"gpu", "torch"} if wanted else {"gpu", "torch", *ELSEWHERE}
        checks = {name: text for name, text in found.items() if name not in left_out}
        good = [name for name, text in checks.items() if text == "ok"]
        as_wished = good if wanted else [name for name, text in checks.items() if "no kernel image" in text]
        what = "agree with the CPU" if wanted else "fail with 'no kernel image'"
        print(
            f"{title}: {len(as_wished)} of {len(checks)} operators {what}  ({found.get('gpu')}, {found.get('torch')})"
        )
        for name in sorted(checks.keys() - set(as_wished)):
            print(f"    {name}: {checks[name]}")
        failed = failed or len(as_wished) < len(checks)
    if out is not None:
        out.write_text(json.dumps(results, indent=1) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
