"""What a run tells others: experiment trackers and traces. Off unless asked for; a run never fails because of one."""

from ksearch.trackers.base import Call, Closed, End, Measured, Start, Tracker
from ksearch.trackers.feed import Feed, feed_all
from ksearch.trackers.guard import Guarded
from ksearch.trackers.opening import KINDS, open_tracker

__all__ = [
    "KINDS",
    "Call",
    "Closed",
    "End",
    "Feed",
    "Guarded",
    "Measured",
    "Start",
    "Tracker",
    "feed_all",
    "open_tracker",
]
