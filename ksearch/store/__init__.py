"""Where runs are kept: append-only, hash-chained events and content-addressed blobs."""

from ksearch.store.opening import open_store
from ksearch.store.portable import copy_run, export_run, import_run
from ksearch.store.records import RunInfo, StoredEvent, blob_name, canonical
from ksearch.store.sql import Store

__all__ = [
    "RunInfo",
    "Store",
    "StoredEvent",
    "blob_name",
    "canonical",
    "copy_run",
    "export_run",
    "import_run",
    "open_store",
]
