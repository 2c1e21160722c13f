"""What a prompt is made from: plain data, gathered by the driver, so that rendering needs no store and no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ksearch.definition import TaskSpec
from ksearch.events import AnyEvent
from ksearch.history import Remark, attempts_at, last_assessment, remarks
from ksearch.protocol import Kind, Request
from ksearch.state import Attempt, State
from ksearch.types import Evaluation, Node, Program

SourceOf = Callable[[str], Program | None]


def no_source(program_id: str) -> Program | None:  # noqa: ARG001
    """Nothing is known of any program's source."""
    return None


@dataclass(frozen=True, slots=True)
class Limit:
    """What bounds one workload on the machine that measures: the floor, and which of its two terms sets it."""

    binds: str  # "memory" or "arithmetic"
    floor_ms: float
    bytes_moved: float
    operations: float


@dataclass(frozen=True, slots=True)
class PromptView:
    """One request and all that its prompt may tell. Texts come from outside and are treated as foreign."""

    request: Request
    state: State
    task: TaskSpec
    reply_form: str  # how to answer, from `ksearch.replies`
    language: str = ""  # to write in; empty = the task's first
    reference: str = ""  # text of the task's reference.py
    hardware: str = ""  # sheet of the machine that measures
    limits: Mapping[str, Limit] = field(default_factory=dict)  # by workload, where they are known
    guide: str = ""  # language guide
    attempts: tuple[Attempt, ...] = ()  # PLAN: of the cycle just closed; WRITE: all at this action
    refusals: tuple[str, ...] = ()  # why earlier answers to this very request were not taken
    assessment: str = ""  # the planner's last one
    remarks: tuple[Remark, ...] = ()  # people's
    source_of: SourceOf = field(default=no_source)

    @classmethod
    def gather(
        cls,
        request: Request,
        state: State,
        events: Sequence[AnyEvent],
        task: TaskSpec,
        reply_form: str,
        source_of: SourceOf,
        *,
        reference: str = "",
        hardware: str = "",
        limits: Mapping[str, Limit] | None = None,
        guide: str = "",
        language: str = "",
    ) -> PromptView:
        """Take from state and log what belongs to this request."""
        pending = state.pending.get(request.id)
        return cls(
            request=request,
            state=state,
            task=task,
            reply_form=reply_form,
            language=language,
            reference=reference,
            hardware=hardware,
            limits=limits or {},
            guide=guide,
            attempts=attempts_at(events, request.node_id, last_cycle=request.kind is Kind.PLAN),
            refusals=pending.refusals if pending else (),
            assessment=last_assessment(events) if request.kind is Kind.PLAN else "",
            remarks=remarks(events),
            source_of=source_of,
        )

    @property
    def node(self) -> Node:
        return self.state.tree[self.request.node_id]

    @property
    def written_in(self) -> str:
        return self.language or self.task.languages[0]

    @property
    def languages(self) -> tuple[str, ...]:
        """What a program may be written in, the usual one first: all of the task's unless the run names one."""
        return (self.language,) if self.language else tuple(self.task.languages)

    @property
    def parent_program_id(self) -> str | None:
        """The program of the node's parent; None: the baseline."""
        parent = self.node.parent_id
        return self.state.tree[parent].program_id if parent else None

    def evaluation(self, program_id: str | None) -> Evaluation | None:
        return self.state.evaluations.get(program_id or "")
