"""new, run, resume: a search begins, and goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ksearch.cli import options as opt
from ksearch.cli.boundary import say

if TYPE_CHECKING:
    from ksearch.config import Loaded
    from ksearch.run import Run
    from ksearch.store import Store

NameOption = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Of the run. Default: TASK-1, -2, ...")]
TaskOption = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME|PATH", help="A bundled task, a folder, or a task in another format."),
]
Evaluations = Annotated[int | None, typer.Option(min=0, help="Budget: programs measured. Default: 120.")]
Attempts = Annotated[int | None, typer.Option(min=0, help="Budget: programs written. Default: 3 per evaluation.")]
Tokens = Annotated[int | None, typer.Option(min=0, help="Budget: tokens of all model calls.")]
Usd = Annotated[float | None, typer.Option(min=0, help="Budget: money for model calls.")]
Minutes = Annotated[float | None, typer.Option(min=0, help="Budget: working time.")]
Stagnation = Annotated[int | None, typer.Option(min=1, help="Attempts without improvement that end an action.")]
MaxNewNodes = Annotated[int | None, typer.Option(min=1, help="Actions that one plan may add.")]
MaxDifficulty = Annotated[int | None, typer.Option(min=1, max=5, help="Harder actions wait for the easier ones.")]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="SPEC",
        help="Who plans and writes: PROVIDER:NAME, command:CMD (command:claude), transcript:FILE, or agent: answers "
        "come by MCP or `tell`. Default: agent.",
    ),
]
PlannerModel = Annotated[str | None, typer.Option(metavar="SPEC", help="Who plans, where it is another.")]
WriterModel = Annotated[str | None, typer.Option(metavar="SPEC", help="Who writes, where it is another.")]
WriterList = Annotated[
    list[str] | None,
    typer.Option("--writer", metavar="SPEC", help="One of several who write: give it once for each."),
]
WriterChoice = Annotated[
    str | None,
    typer.Option(
        metavar="turn|bandit", help="Who of several writes next: in turn, or by gain per cost. Default: turn."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(metavar="URL", help="Another address of the provider's protocol.")]
KeyEnv = Annotated[str | None, typer.Option(metavar="VARIABLE", help="Variable that holds the key, with --base-url.")]
Record = Annotated[str | None, typer.Option(metavar="FILE", help="Append each reply to a transcript.")]
Track = Annotated[
    str | None, typer.Option(metavar="NAMES", help="Tell trackers of it: wandb, mlflow, otel; several with commas.")
]
AtOnce = Annotated[
    str | None,
    typer.Option(
        "--parallel",
        metavar="N|auto",
        help="Model calls at once, beside builds and timing. auto: as many as keep the device busy. Default: 1, the "
        "straight line of the paper.",
    ),
]
Gpus = Annotated[int | None, typer.Option(min=1, help="GPUs to measure on at once. Default: all that are visible.")]
Pool = Annotated[
    str | None,
    typer.Option(
        metavar="local|ray", help="Who measures: this host, or the machines of a Ray cluster. Default: local."
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Head of the cluster. Default: RAY_ADDRESS, else this machine's cluster."),
]
GpuModel = Annotated[
    str | None, typer.Option(metavar="NAME", help="Which GPUs of a mixed cluster, as Ray names them: H200.")
]
PromptTokens = Annotated[
    int | None,
    typer.Option(min=1, help="Longest prompt; the least important is left out of a longer one. Default: 24000."),
]
ReplyTokens = Annotated[int | None, typer.Option(min=1, help="Longest reply, with its reasoning. Default: 16000.")]
Language = Annotated[str | None, typer.Option(metavar="NAME", help="To write in. Default: the task's first.")]


def new(
    name: NameOption = None,
    task: TaskOption = None,
    evaluations: Evaluations = None,
    attempts: Attempts = None,
    tokens: Tokens = None,
    usd: Usd = None,
    minutes: Minutes = None,
    stagnation: Stagnation = None,
    max_new_nodes: MaxNewNodes = None,
    max_difficulty: MaxDifficulty = None,
    language: Language = None,
    config: opt.ConfigOption = None,
    store: opt.StoreOption = None,
    as_json: opt.JsonOption = False,
) -> None:
    """Begin a run that is carried on by hand, or by agents, with `ask` and `tell`.

    \b
    Examples:
      ksearch new --name by-hand --evaluations 3
      ksearch new --task softmax --evaluations 20 --stagnation 5
    """
    flags = _flags(locals())
    from ksearch.cli.opening import opened
    from ksearch.service.preflight import preflight

    loaded = load(flags, config)
    with opened(store) as opened_store:
        found = begin(opened_store, name, loaded)
        if as_json:
            opt.print_json({"run": found.id, "store": str(opened_store.name)})
            return
        print(f"run {found.id} is begun: {found.state.config.budget.evaluations} evaluations")
        say(preflight(loaded.config))
        say(f"go on with: ksearch ask {found.id}")


def _flags(given: dict[str, Any]) -> dict[str, Any]:
    """What of a command's arguments is a setting of the run."""
    return {k: v for k, v in given.items() if k not in ("name", "config", "store", "as_json", "quiet")}


def load(flags: dict[str, Any], file: str | None) -> Loaded:
    from ksearch import config

    loaded = config.load(flags, file=file)
    for note in loaded.notes:
        say(f"note: {note}")
    return loaded


def begin(store: Store, name: str | None, loaded: Loaded) -> Run:
    from ksearch.service import beginning

    return beginning.begin(store, name, loaded)


def run(
    name: NameOption = None,
    task: TaskOption = None,
    model: Model = None,
    planner_model: PlannerModel = None,
    writer_model: WriterModel = None,
    writers: WriterList = None,
    writer_choice: WriterChoice = None,
    base_url: BaseUrl = None,
    key_env: KeyEnv = None,
    record: Record = None,
    track: Track = None,
    evaluations: Evaluations = None,
    attempts: Attempts = None,
    tokens: Tokens = None,
    usd: Usd = None,
    minutes: Minutes = None,
    stagnation: Stagnation = None,
    max_new_nodes: MaxNewNodes = None,
    max_difficulty: MaxDifficulty = None,
    language: Language = None,
    prompt_tokens: PromptTokens = None,
    reply_tokens: ReplyTokens = None,
    parallel: AtOnce = None,
    gpus: Gpus = None,
    pool: Pool = None,
    ray_address: RayAddress = None,
    gpu_model: GpuModel = None,
    config: opt.ConfigOption = None,
    store: opt.StoreOption = None,
    quiet: opt.QuietOption = False,
    as_json: opt.JsonOption = False,
) -> int:
    """Search: begin a run and carry it on until its budget is spent.

    With --model agent, programs are measured here, and plans and programs come from outside by `tell`.
    Ctrl-C once finishes what is at work and stops; twice stops at once. Nothing is lost either way.

    \b
    Examples:
      ksearch run --task softmax --model openai:gpt-5 --evaluations 20
      ksearch run --task ./my-kernel --model agent
      ksearch run --task softmax --model openai:gpt-5 --parallel auto
      ksearch run --task gemm --model openai:gpt-5 --writer openai:gpt-5 --writer command:claude --writer-choice bandit
    """
    return _searched(dict(locals()))


def _searched(given: dict[str, Any]) -> int:
    from ksearch.cli.driving import Manner, begin_and_carry_on
    from ksearch.cli.opening import opened

    loaded = load(_flags(given), given["config"])
    with opened(given["store"]) as opened_store:
        return begin_and_carry_on(opened_store, given["name"], loaded, Manner(given["quiet"], given["as_json"]))


def resume(
    run: opt.RunArgument = None,
    store: opt.StoreOption = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Wait for answers from outside, and measure, until the run has ended.")
    ] = False,
    prompt_tokens: PromptTokens = None,
    reply_tokens: ReplyTokens = None,
    parallel: AtOnce = None,
    gpus: Gpus = None,
    pool: Pool = None,
    ray_address: RayAddress = None,
    gpu_model: GpuModel = None,
    quiet: opt.QuietOption = False,
    as_json: opt.JsonOption = False,
) -> int:
    """Go on with a run as it was begun. Several may work on one run at the same time: they share it.

    What a killed driver held is handed out again at once; a reply that was stored is not asked, or paid, again.

    \b
    Examples:
      ksearch resume
      ksearch resume softmax-1 --stay
      ksearch resume softmax-1 --reply-tokens 32000
      ksearch resume softmax-1 --parallel 8
      ksearch resume softmax-1 --parallel auto --pool ray --ray-address head:6379
    """
    given = ("prompt_tokens", "reply_tokens", "parallel", "gpus", "pool", "ray_address", "gpu_model")
    changes = {name: value for name, value in locals().items() if name in given}
    from ksearch.cli.driving import Manner, carry_on
    from ksearch.cli.opening import opened_run

    with opened_run(store, run) as found:
        return carry_on(found, Manner(quiet, as_json, stay, changes))
