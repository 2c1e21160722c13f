"""One cheat as data: what it does, what must become of it, and which named defence does that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ksearch.evaluators.defences import Defence
from ksearch.types import Program, Verdict

CHEATS = Path(__file__).parent / "cheats"
GPU_CHEATS = Path(__file__).parent / "gpu" / "cheats"
HELPERS = {"py": ("honest.py", "honest_triton.py"), "cpp": ("honest.h", "patch.h"), "cu": ("honest.cuh",)}
LOOT = "LOOT:"  # a thief prints this as soon as it holds what it must not get
GAIN = 3.0  # over the baseline: a cheat that only saves work is as slow as the baseline when it may not


@dataclass(frozen=True, slots=True)
class Cheat:
    """`file` in the folder of cheats holds the line that makes it one (`CHEAT = True`, `#define CHEAT 1`).

    Its twin is the same file with that line turned round (and without lines that end in `# cheat only`, for what is
    looked for in the text itself), so the two differ in nothing else.

    There are three ways to stop a cheat, by what must be seen:
    caught: the verdict is one of `verdicts`, none of them `passed`;
    barren (`saves`): it may pass, since what it hands out is right, but gains nothing;
    fenced (`steals`): it may pass, since what it hands out is right, but it does not get what it is after.
    The proof is the opposite of that, seen with `defences` switched off.
    """

    file: str
    verdicts: tuple[Verdict, ...]
    stages: tuple[str, ...]
    defences: tuple[Defence, ...] = ()  # each stops it alone: all are off in the proof; empty: see `because`
    variant: str = "plain"
    saves: bool = False
    steals: bool = False
    because: str = ""  # no defence can be switched off: what it is that stops the cheat
    x86: bool = False  # holds machine code
    root_proof: bool = False  # only an administrator's evaluator can be harmed in this way
    cores: int = 1  # at least so many, or nothing can be shown
    alone: bool = False  # harms whatever else is measured on the GPU meanwhile
    device: str = "cpu"  # "cuda": a file in the folder of GPU cheats, in the task of its own

    @property
    def name(self) -> str:
        """The file's name, words joined by hyphens; of a GPU cheat with `gpu-` before it."""
        prefix = "gpu-" if self.device == "cuda" else ""
        return prefix + self.file.partition(".")[0].replace("_", "-")

    @property
    def folder(self) -> Path:
        return GPU_CHEATS if self.device == "cuda" else CHEATS

    @property
    def language(self) -> str:
        if self.file.endswith(".py"):
            return "triton" if "triton" in self.source else "python"
        return "cuda" if self.file.endswith(".cu") else "cpp"

    @property
    def source(self) -> str:
        return (self.folder / self.file).read_text("utf-8")

    @property
    def what(self) -> str:
        """What it does, in its own first line."""
        first = self.source.partition("\n")[0]
        return first.strip('"').removeprefix("// ")

    def program(self, *, twin: bool = False) -> Program:
        """The cheat as a program, or its honest twin.

        Raises:
            ValueError: the file does not say exactly once that it is a cheat.
        """
        ending = self.file.rpartition(".")[2]
        on, off = ("CHEAT = True", "CHEAT = False") if ending == "py" else ("CHEAT 1", "CHEAT 0")
        text = self.source
        if text.count(on) != 1:
            raise ValueError(f"{self.folder / self.file}: needs {on!r} exactly once, found {text.count(on)}")
        if twin:
            lines = text.replace(on, off).splitlines(keepends=True)
            text = "".join(line for line in lines if not line.rstrip().endswith("# cheat only"))
        used = [n for n in HELPERS[ending] if f'"{n}"' in text or f"from {n.removesuffix('.py')} import" in text]
        sources = {name: (self.folder / name).read_text("utf-8") for name in used}
        return Program({**sources, self.file: text}, f"{self.file}::run", self.language)
