"""Any interleaving, loss, duplication, expiry, late and stale reply, and people who interfere."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ksearch import events as ev
from ksearch import search
from ksearch.budget import evaluations_committed, tokens_committed, usd_committed
from ksearch.fold import apply, fold
from ksearch.protocol import Budget, Cost, Kind, SearchConfig
from ksearch.state import State
from ksearch.types import NodeStatus
from tests.core.drive import Pool

pools = st.builds(
    Pool,
    seed=st.integers(0, 10**9),
    config=st.builds(
        SearchConfig,
        budget=st.builds(
            Budget,
            evaluations=st.integers(0, 25),
            attempts=st.none() | st.integers(0, 60),
            tokens=st.none() | st.integers(0, 4000),
            usd=st.none() | st.floats(0, 8),
            seconds=st.none() | st.floats(0, 60),
        ),
        stagnation=st.integers(1, 4),
        max_active=st.integers(1, 4),
        width=st.integers(1, 3),
        max_retries=st.integers(0, 2),
        reserve=st.just(Cost(100, 0.25)),
        writers=st.sampled_from([(), ("ann", "bob"), ("ann", "bob", "eve")]),
        bandit=st.booleans(),
    ),
    workers=st.integers(1, 5),
    chaos=st.sampled_from([0.0, 0.1, 0.4]),
    people=st.sampled_from([0.0, 0.1]),
)


@settings(max_examples=120, deadline=None)
@given(pools)
def test_replay_of_every_prefix_gives_the_identical_state(pool: Pool) -> None:
    pool.run()
    state = State()
    for event, expected in zip(pool.log, pool.states[1:], strict=True):
        state = apply(state, event)
        assert state == expected
    assert fold(pool.log) == pool.state


@settings(max_examples=150, deadline=None)
@given(pools)
def test_no_budget_is_overshot_at_any_moment(pool: Pool) -> None:
    pool.run()
    budget = pool.config.budget
    for state in pool.states:
        assert evaluations_committed(state) <= budget.evaluations
        assert state.evaluated <= budget.evaluations
        submitted_or_asked = state.attempts
        assert submitted_or_asked <= budget.max_attempts
        if budget.tokens is not None:
            assert tokens_committed(state) <= budget.tokens
        if budget.usd is not None:
            assert usd_committed(state) <= budget.usd + 1e-9


@settings(max_examples=150, deadline=None)
@given(pools)
def test_a_run_ends_by_itself_and_nothing_is_left_in_the_air(pool: Pool) -> None:
    why = pool.run()
    assert why == pool.state.ended
    assert not pool.state.cycles
    assert not any(p.lease for p in pool.state.pending.values())
    assert not [n for n in pool.state.tree.values() if n.status is NodeStatus.ACTIVE]


@settings(max_examples=150, deadline=None)
@given(pools)
def test_the_tree_is_sound_at_every_moment(pool: Pool) -> None:
    pool.run()
    for state in pool.states:
        for node in state.tree.values():
            assert (node.status is NodeStatus.ACTIVE) == (node.id in state.cycles)
            if node.parent_id is None:
                continue
            parent = state.tree[node.parent_id]
            if node.status in (NodeStatus.SOLVED, NodeStatus.ACTIVE, NodeStatus.REJECTED):
                assert parent.status is NodeStatus.SOLVED
            if node.status is NodeStatus.SOLVED:
                assert node.program_id
                assert node.speedup
                assert node.attempts > 0
            if node.status is NodeStatus.OPEN:
                assert parent.status in (NodeStatus.OPEN, NodeStatus.SOLVED, NodeStatus.ACTIVE)


@settings(max_examples=80, deadline=None)
@given(pools)
def test_a_program_is_measured_once_and_never_lost_between_writing_and_measuring(pool: Pool) -> None:
    pool.run()
    measured = [e.evaluation.program_id for e in pool.log if type(e).__name__ == "Evaluated"]
    assert len(measured) == len(set(measured))
    written = {e.program_id for e in pool.log if type(e).__name__ in ("Written", "Submitted")}
    assert set(measured) == written


@settings(max_examples=80, deadline=None)
@given(pools)
def test_what_writers_cost_and_brought_adds_up(pool: Pool) -> None:
    pool.run()
    asked = [e.request for e in pool.log if isinstance(e, ev.Asked) and e.request.kind is Kind.WRITE]
    assert all(r.writer in pool.config.writers if pool.config.writers else not r.writer for r in asked)
    assert sum(t.asked for t in pool.state.writers.values()) == (len(asked) if pool.config.writers else 0)
    for state in pool.states:
        tallies = state.writers.values()
        assert all(0 <= t.gains <= t.judged <= t.asked for t in tallies)
        assert all(t.tokens >= 0 and (t.gains > 0) == (t.log_gain > 0) for t in tallies)
        assert sum(t.tokens for t in tallies) <= state.spent.tokens
        assert sum(t.usd for t in tallies) <= (state.spent.usd or 0.0) + 1e-9


@settings(max_examples=80, deadline=None)
@given(pools)
def test_asking_is_pure_and_agrees_with_itself(pool: Pool) -> None:
    pool.run()
    for state in pool.states[:: max(1, len(pool.states) // 50)]:
        assert search.ask(state, state.last_at) == search.ask(state, state.last_at)


@settings(max_examples=60, deadline=None)
@given(pools, st.data())
def test_following_leaves_nothing_to_follow(pool: Pool, data: st.DataObject) -> None:
    """Wherever a driver is killed between two appends, the next one finds the same consequences due."""
    pool.run()
    cut = data.draw(st.integers(1, len(pool.log)))
    state = fold(pool.log[:cut])
    events = search.due(state, state.last_at)
    assert search.due(fold(events, state), state.last_at) == []
