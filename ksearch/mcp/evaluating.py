"""evaluate: wait for the measurements of a run, telling how far they are."""

from __future__ import annotations

import time
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context

from ksearch import events as ev
from ksearch.codec import decode_event
from ksearch.mcp.house import House
from ksearch.mcp.measuring import Measurer, Measurers, unmeasured
from ksearch.mcp.telling import Said, explain, happened, refuse, short, verdict_facts
from ksearch.prompts.text import plural
from ksearch.run import Run
from ksearch.service.beginning import setting

POLL_S = 0.3
LOG = 1500  # characters of a failed build or run that are told at once


async def report(context: Context, seconds: float, message: str) -> None:
    """Progress for clients that asked for it: seconds so far, since nobody knows how many there will be."""
    await context.report_progress(round(seconds, 1), None, message)


class Evaluating:
    def __init__(self, house: House) -> None:
        self._house = house
        self.measurers = Measurers(house)

    def doing(self, run_name: str) -> str | None:
        """What is being measured here, for `status`."""
        with self._house.run(run_name) as run:
            measurer = self.measurers.of(run.id)
        return measurer.at if measurer.busy else None

    async def evaluate(self, context: Context, run_name: str, wait_s: float) -> Said:
        """Measure what waits, for at most `wait_s`; it goes on afterwards."""
        run_id, seq, wanted = await anyio.to_thread.run_sync(self._begun, run_name)
        measurer, began = self.measurers.of(run_id), time.monotonic()
        if wanted:
            measurer.start()
        told = -1.0
        while measurer.busy and (passed := time.monotonic() - began) < wait_s:
            if passed - told >= 1:
                told = passed
                await report(context, passed, f"{measurer.at} ({passed:.0f} s)")
            await anyio.sleep(POLL_S)
        return await anyio.to_thread.run_sync(self._found, run_id, seq, measurer)

    def _begun(self, run_name: str) -> tuple[str, int, bool]:
        with self._house.run(run_name) as run:
            waiting = unmeasured(run.state)
            why_not = self._house.why_not_measured_here(setting(run.state))
            if waiting and why_not and not self.measurers.of(run.id).busy:
                elsewhere = f"`ksearch resume {run.id} --stay` measures them where the device is"
                then = f'next_request(run="{run.id}", wait_s=45), which waits for the results'
                raise refuse(f"{plural(len(waiting), 'program')} cannot be measured here: {why_not}. {elsewhere}", then)
            return run.id, run.seq, bool(waiting) and not run.state.paused

    def _found(self, run_id: str, seq: int, measurer: Measurer) -> Said:
        with self._house.run(run_id) as run:
            new = [decode_event(stored.body) for stored in self._house.store.read(run_id, seq)]
            done = [event.evaluation for event in new if isinstance(event, ev.Evaluated)]
            waiting = unmeasured(run.state)
            if measurer.failure and waiting:
                raise refuse(f"measuring failed: {explain(measurer.failure)}", f'status(run="{run_id}")')
            facts: dict[str, Any] = {"run": run_id, "measured": [verdict_facts(found) for found in done]}
            if not done and run.state.evaluations:  # it may have ended between two calls
                last = list(run.state.evaluations.values())[-1]
                facts["measured_last"] = verdict_facts(last)
            facts |= {"happened": happened(new), "waiting": len(waiting)}
            facts |= {"now": measurer.at} if measurer.busy else {}
            facts |= {"best": short(run.state.best_id), "next": _next(run, waiting)}
            failed = [found for found in done if found.log and not found.speedup]
            logs = [f"{short(found.program_id)}:\n{found.log[-LOG:]}" for found in failed]
            return Said(facts, logs)


def _next(run: Run, waiting: list[str]) -> str:
    if run.state.ended:
        return f'best(run="{run.id}")'
    if run.state.paused:
        return f'ask your user, then resume(run="{run.id}")'
    return f'evaluate(run="{run.id}")' if waiting else f'next_request(run="{run.id}")'
