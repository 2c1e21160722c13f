"""A run frozen into one HTML file that opens from disk: the dashboard's own pages over data that no longer change."""

from ksearch.frozen.answers import MAX_BYTES, frozen_answers
from ksearch.frozen.page import frozen_page

__all__ = ["MAX_BYTES", "frozen_answers", "frozen_page"]
