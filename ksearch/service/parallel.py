"""How much is at work at once: as many as were asked for, or as the run's own times show to be enough."""

from __future__ import annotations

import math
from collections import deque
from statistics import median, quantiles

from ksearch import events as ev
from ksearch.config import recorded
from ksearch.drivers import Pools
from ksearch.protocol import Kind
from ksearch.run import Run
from ksearch.service.beginning import log_of
from ksearch.state import State

AUTO = "auto"
GUESS_PER_DEVICE = 8  # while nothing is known: a model that thinks for a minute, an evaluation of ten seconds
MOST_PER_DEVICE = 16
SPARE = 1.25  # more than enough on average: rounds end together, and plans come between
_SAMPLES, _LEAST = 40, 6


def shape(in_flight: int) -> tuple[int, int]:
    """Actions at once, and programs at once for each.

    About as many of one as of the other: more actions than that find too few open nodes at the beginning, when the
    tree is small; more programs for one action than that are written without having seen how the others fared. There
    are more places than workers, since a round waits for its last program, and an action's end for the next plan.
    """
    if in_flight == 1:
        return 1, 1
    width = round(math.sqrt(in_flight))
    return math.ceil(1.5 * in_flight / width), width


class Parallel:
    """Pools for `drive_many`. With "auto", the number follows the latencies in the run's log."""

    def __init__(self, run: Run, wanted: str, devices: int, author: str = "engine") -> None:
        self.run, self.devices, self.author = run, devices, author
        self.auto = wanted == AUTO
        self.number = GUESS_PER_DEVICE * devices if self.auto else int(wanted)
        self._minds_s: deque[float] = deque(maxlen=_SAMPLES)
        self._benches_s: deque[float] = deque(maxlen=_SAMPLES)
        self._out: dict[str, tuple[Kind, float]] = {}
        self._fresh = 0
        loaded = recorded(run.state.context)
        self._settings = loaded.config if loaded else None  # as the run was begun, whatever its log says later
        for event in log_of(run):
            self._see(event, run.state)
        if self.auto:
            self.number = self._enough() or self.number
        run.watchers.append(self._see)

    def pools(self) -> Pools:
        """Asked between two pieces of work, so this is where the number changes, by a command in the log."""
        if self.auto and self._fresh >= 10:
            self._fresh = 0
            enough = self._enough()
            if enough and not 0.75 < enough / self.number < 1.34:
                self.number = enough
        self.settle()
        # One is timed on each device, and two are built or wait, so that none waits for a compiler.
        return Pools(self.number, min(self.number, 3 * self.devices))

    def settle(self) -> None:
        """Give the run as many places as there is to be work for; what its settings say of them goes first."""
        state, given = self.run.state, self._settings
        if given is None or state.ended:
            return
        active, width = shape(self.number)
        config = state.config
        active = given.max_active if given.max_active > 1 else active
        width = given.width if given.width > 1 else width
        if (config.max_active, config.width) != (active, width):
            self.run.command(ev.SetParallel(active, width), self.author)

    def _see(self, event: ev.Event, _: State) -> None:
        match event:
            case ev.Asked(request=request):
                self._out[request.id] = (request.kind, 0.0)
            case ev.Leased(request_id=id) if id in self._out:
                self._out[id] = (self._out[id][0], event.at)
            case ev.Received(request_id=id) if self._out.get(id, (None, 0.0))[1]:
                self._minds_s.append(event.at - self._out.pop(id)[1])
            case ev.Evaluated(request_id=id) if self._out.get(id, (None, 0.0))[1]:
                self._benches_s.append(event.at - self._out.pop(id)[1])
                self._fresh += 1

    def _enough(self) -> int | None:
        """Calls at once that keep all devices busy; None while too little is known.

        What passes between lease and result of an evaluation holds its wait for the device too: the fast quarter tells
        what it takes.
        """
        if min(len(self._minds_s), len(self._benches_s)) < _LEAST:
            return None
        model_s, bench_s = median(self._minds_s), max(quantiles(self._benches_s)[0], 1e-3)
        enough = math.ceil(SPARE * self.devices * (model_s / bench_s + 1))
        return max(2, min(enough, MOST_PER_DEVICE * self.devices))
