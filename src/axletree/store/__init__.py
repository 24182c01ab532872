"""Where trees and results live: content-addressed, verified, complete or absent, shared by processes."""

from axletree.store.blobs import CorruptBlob
from axletree.store.checking import VerifyReport, verify
from axletree.store.layout import STORE_VARIABLE
from axletree.store.store import Store
from axletree.store.sweep import GcReport, gc
from axletree.store.usage import DuReport, du

__all__ = [
    "STORE_VARIABLE",
    "CorruptBlob",
    "DuReport",
    "GcReport",
    "Store",
    "VerifyReport",
    "du",
    "gc",
    "verify",
]
