"""One error type per boundary. Each message is complete: what happened, where, and what to do about it."""

from __future__ import annotations


class KSearchError(Exception):
    """Base of every error that K-Search raises on purpose: its text is meant for the user."""


class StoreError(KSearchError):
    """The store could not be opened, read or written."""


class UnknownRun(StoreError):
    """The store holds no run of that name."""


class UnknownBlob(StoreError):
    """The store holds no blob of that SHA-256."""


class Conflict(StoreError):
    """Somebody else appended first. Read what is new, decide again, append again."""

    def __init__(self, message: str, actual_seq: int) -> None:
        super().__init__(message)
        self.actual_seq = actual_seq


class Corrupt(StoreError):
    """What was read is not what was written."""


class InvalidEdit(KSearchError):
    """A tree edit that breaks the tree's rules: shown to the planner, agent or person who asked for it."""


class InvalidReply(KSearchError):
    """A reply of the wrong kind, or to a request that nobody made. Nothing was recorded."""


class InvalidCommand(KSearchError):
    """A command, or a submitted program, that the run cannot take. Nothing was recorded."""


class TaskError(KSearchError):
    """A task folder that cannot be used. The message names the file, the line, the value and the fix."""


class CodecError(KSearchError):
    """Text or JSON that is not what it should be: the message names the place in it."""


class PromptError(KSearchError):
    """A prompt cannot be rendered: a template is broken."""


class PromptTooLong(PromptError):
    """What must be in a prompt does not fit its token limit."""


class Unavailable(KSearchError):
    """Whoever was to answer did not: a model, a worker, a machine. The work is asked again."""
