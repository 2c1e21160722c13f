"""A program on its way out: into FlashInfer-Bench, GPU MODE or torch, each with what the target needs around it."""

from ksearch.exporters.common import Exported, ExportError
from ksearch.exporters.targets import TARGETS, export_program

__all__ = ["TARGETS", "ExportError", "Exported", "export_program"]
