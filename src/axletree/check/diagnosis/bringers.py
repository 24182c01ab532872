"""Who brings a header, a library of the system, or a symbol: short tables for what builds ask for most."""

from __future__ import annotations

from axletree.check.diagnosis.linear import expression

HEADERS: dict[str, tuple[str, str]] = {
    "Eigen/": ("libeigen3-dev", "eigen"),
    "GL/": ("libgl-dev", "libgl-devel"),
    "X11/": ("libx11-dev", "xorg-libx11"),
    "benchmark/": ("libbenchmark-dev", "benchmark"),
    "boost/": ("libboost-dev", "libboost-headers"),
    "bzlib.h": ("libbz2-dev", "bzip2"),
    "cblas.h": ("libopenblas-dev", "openblas"),
    "curl/": ("libcurl4-openssl-dev", "libcurl"),
    "expat.h": ("libexpat1-dev", "expat"),
    "ffi.h": ("libffi-dev", "libffi"),
    "fftw3.h": ("libfftw3-dev", "fftw"),
    "fmt/": ("libfmt-dev", "fmt"),
    "freetype": ("libfreetype-dev", "freetype"),
    "ft2build.h": ("libfreetype-dev", "freetype"),
    "gflags/": ("libgflags-dev", "gflags"),
    "glog/": ("libgoogle-glog-dev", "glog"),
    "gmp.h": ("libgmp-dev", "gmp"),
    "google/protobuf/": ("libprotobuf-dev", "libprotobuf"),
    "gtest/": ("libgtest-dev", "gtest"),
    "hdf5.h": ("libhdf5-dev", "hdf5"),
    "infiniband/": ("libibverbs-dev", "rdma-core"),
    "jpeglib.h": ("libjpeg-dev", "libjpeg-turbo"),
    "lapacke.h": ("liblapacke-dev", "liblapacke"),
    "libxml/": ("libxml2-dev", "libxml2-devel"),
    "lmdb.h": ("liblmdb-dev", "lmdb"),
    "lz4.h": ("liblz4-dev", "lz4-c"),
    "lzma.h": ("liblzma-dev", "liblzma-devel"),
    "mpi.h": ("libopenmpi-dev", "openmpi"),
    "ncurses.h": ("libncurses-dev", "ncurses"),
    "nlohmann/": ("nlohmann-json3-dev", "nlohmann_json"),
    "numa.h": ("libnuma-dev", "libnuma"),
    "openssl/": ("libssl-dev", "openssl"),
    "png.h": ("libpng-dev", "libpng"),
    "pybind11/": ("pybind11-dev", "pybind11"),
    "readline/": ("libreadline-dev", "readline"),
    "snappy.h": ("libsnappy-dev", "snappy"),
    "sndfile.h": ("libsndfile1-dev", "libsndfile"),
    "sox.h": ("libsox-dev", "sox"),
    "spdlog/": ("libspdlog-dev", "spdlog"),
    "sqlite3.h": ("libsqlite3-dev", "sqlite"),
    "tbb/": ("libtbb-dev", "tbb-devel"),
    "tiffio.h": ("libtiff-dev", "libtiff"),
    "uuid/": ("uuid-dev", "libuuid"),
    "yaml.h": ("libyaml-dev", "yaml"),
    "yaml-cpp/": ("libyaml-cpp-dev", "yaml-cpp"),
    "zlib.h": ("zlib1g-dev", "zlib"),
    "zmq.h": ("libzmq3-dev", "zeromq"),
    "zstd.h": ("libzstd-dev", "zstd"),
}
"""Header, or folder of headers -> Debian's package, conda-forge's."""

LIBRARIES: dict[str, tuple[str, str]] = {
    "libGL": ("libgl1", "libgl"),
    "libEGL": ("libegl1", "libegl"),
    "libX11": ("libx11-6", "xorg-libx11"),
    "libSM": ("libsm6", "xorg-libsm"),
    "libXext": ("libxext6", "xorg-libxext"),
    "libXrender": ("libxrender1", "xorg-libxrender"),
    "libglib-2.0": ("libglib2.0-0", "libglib"),
    "libgthread-2.0": ("libglib2.0-0", "libglib"),
    "libgomp": ("libgomp1", "libgomp"),
    "libomp": ("libomp5", "llvm-openmp"),
    "libgfortran": ("libgfortran5", "libgfortran5"),
    "libquadmath": ("libquadmath0", "libgfortran5"),
    "libnuma": ("libnuma1", "libnuma"),
    "libelf": ("libelf1", "elfutils"),
    "libdrm": ("libdrm2", "libdrm"),
    "libibverbs": ("libibverbs1", "rdma-core"),
    "librdmacm": ("librdmacm1", "rdma-core"),
    "libmpi": ("libopenmpi3", "openmpi"),
    "libopenblas": ("libopenblas0", "libopenblas"),
    "liblapack": ("liblapack3", "liblapack"),
    "libblas": ("libblas3", "libblas"),
    "libffi": ("libffi8", "libffi"),
    "libssl": ("libssl3", "openssl"),
    "libcrypto": ("libssl3", "openssl"),
    "libz": ("zlib1g", "libzlib"),
    "libzstd": ("libzstd1", "zstd"),
    "libbz2": ("libbz2-1.0", "bzip2"),
    "liblzma": ("liblzma5", "liblzma"),
    "libsqlite3": ("libsqlite3-0", "libsqlite"),
    "libsndfile": ("libsndfile1", "libsndfile"),
    "libtbb": ("libtbb12", "tbb"),
    "libstdc++": ("libstdc++6", "libstdcxx"),
    "libgcc_s": ("libgcc-s1", "libgcc"),
    "libpython3": ("libpython3-dev", "python"),
}
"""Library without its suffix -> Debian's package, conda-forge's."""

_SYMBOLS: tuple[tuple[str, str], ...] = (
    (r"_Z\w*(?:3c10|2at|5torch|4c10d|6caffe2)|^(?:THP|aoti_torch|torch_)", "torch"),
    (r"^_?Py(?:[A-Z]|_)", "Python's C API, so the file was built for a different Python version"),
    (r"^(?:GOMP|omp)_", "GCC's OpenMP runtime (libgomp)"),
    (r"^__kmpc_", "LLVM's or Intel's OpenMP runtime (libomp, libiomp5)"),
    (r"^(?:mkl_|MKL_|vsl|vd|vs)[A-Za-z_]", "Intel MKL"),
    (r"^(?:cblas_|openblas_|[sdcz](?:gemm|gemv|axpy|dot|getrf|potrf|gesv|syev)\w*_$)", "a BLAS or LAPACK library"),
    (r"^cudnn", "cuDNN"),
    (r"^cublas", "cuBLAS"),
    (r"^cusparse", "cuSPARSE"),
    (r"^cusolver", "cuSOLVER"),
    (r"^cufft", "cuFFT"),
    (r"^cu(?:rand)", "cuRAND"),
    (r"^nvrtc", "NVRTC"),
    (r"^__?nvJitLink|^nvJitLink", "nvJitLink"),
    (r"^nccl", "NCCL"),
    (r"^nvml", "NVML, which comes with the driver"),
    (r"^(?:__)?cuda[A-Z]|^__cudaRegister", "the CUDA runtime (libcudart)"),
    (r"^cu[A-Z]", "the CUDA driver library (libcuda)"),
    (r"^hip[A-Z]|^__hip", "the HIP runtime (libamdhip64)"),
    (r"^(?:roc|mi|hip)(?:blas|fft|sparse|solver|rand|open)", "a ROCm library"),
    (r"^magma", "MAGMA"),
    (r"^(?:SSL|EVP|CRYPTO|X509|BIO|OPENSSL)_", "OpenSSL"),
    (r"^(?:deflate|inflate|crc32|adler32|gz\w+|uncompress|compress)", "zlib"),
    (r"^pthread_|^sem_", "libpthread; link with -pthread"),
    (r"^dl(?:open|sym|close|error|addr)$", "libdl; link with -ldl"),
    (r"^(?:clock_gettime|shm_open|timer_create|mq_open)$", "librt; link with -lrt"),
    (r"^(?:sin|cos|tan|exp|log|pow|sqrt|floor|ceil|fmod|round|lgamma|erf)f?l?$", "libm; link with -lm"),
    (r"_ZNKSt10filesystem|_ZNSt10filesystem", "libstdc++fs; link with -lstdc++fs, or use GCC 9 or later"),
    (r"^_ZN?K?St|^__cxa_|^__gxx_", "the C++ standard library (libstdc++); link with g++ instead of gcc"),
    (r"_Z\w*6google8protobuf", "protobuf"),
    (r"_Z\w*4absl", "Abseil"),
    (r"_Z\w*(?:3fmt)", "fmt"),
    (r"_Z\w*5boost", "Boost"),
)
_OWNERS = tuple((expression(pattern), owner) for pattern, owner in _SYMBOLS)


def header_packages(header: str) -> tuple[str, str] | None:
    """Debian's and conda-forge's package of a header, as it stands in the ``#include``."""
    return next((packages for name, packages in HEADERS.items() if header.startswith(name)), None)


def library_packages(library: str) -> tuple[str, str] | None:
    """Debian's and conda-forge's package of a shared library of the system."""
    stem = library.rpartition("/")[2].partition(".so")[0]
    return LIBRARIES.get(stem)


def symbol_owner(symbol: str) -> str | None:
    """Whose a symbol is, by its name: ``torch``, ``NCCL``."""
    return next((owner for pattern, owner in _OWNERS if pattern.search(symbol)), None)


MODULES: dict[str, str] = {
    "Crypto": "pycryptodome",
    "Cython": "cython",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "jwt": "pyjwt",
    "mesonpy": "meson-python",
    "nacl": "pynacl",
    "pkg_resources": "setuptools<81",
    "pywt": "pywavelets",
    "sklearn": "scikit-learn",
    "skbuild": "scikit-build",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Module -> its distribution, where they have different names."""


def module_distribution(module: str) -> str:
    """The distribution that most likely contains a module."""
    whole = next((name for known, name in MODULES.items() if module == known or module.startswith(f"{known}.")), None)
    return whole or module.partition(".")[0].replace("_", "-").lower()
