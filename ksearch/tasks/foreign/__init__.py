"""The field's own task formats, read unchanged: FlashInfer-Bench, GPU MODE, KernelBench.

`convert` turns a file or folder in one of them into the files of an ordinary task folder; `place` writes these where
they are found again. Nothing here imports torch: what only running the file can tell is asked of a child process.
"""

from ksearch.tasks.foreign.draft import TOO_MANY
from ksearch.tasks.foreign.flashinfer_sizes import TOO_LARGE
from ksearch.tasks.foreign.placing import FORMATS, about, convert, expand, is_foreign, place

__all__ = ["FORMATS", "STOPS", "about", "convert", "expand", "is_foreign", "place"]

STOPS = (TOO_LARGE, TOO_MANY)  # how a note begins that says why a task cannot run here
