"""Is a task fit to be searched? Before a search spends anything: the reference, the programs, the impostors."""

from ksearch.lint.checks import EvaluatorFactory, Measures, lint, lint_folder, local_evaluator
from ksearch.lint.impostors import Impostor, impostors
from ksearch.lint.report import LintReport, Row, Status

__all__ = [
    "EvaluatorFactory",
    "Impostor",
    "LintReport",
    "Measures",
    "Row",
    "Status",
    "impostors",
    "lint",
    "lint_folder",
    "local_evaluator",
]
