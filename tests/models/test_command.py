"""Any program as a model: real processes that answer, fail, hang, flood and leave children behind."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from ksearch.errors import BadAnswer, BadKey, ModelError, ModelTimeout, ModelUnavailable, QuotaExhausted, RateLimited
from ksearch.models import Answer, Call, Model, open_model
from ksearch.models import command as commands
from ksearch.protocol import Cost, Refusal
from ksearch.replies import parse_program

CALL = Call("writer", "new part", stable="stable part\n", system="system part", timeout_s=20)


def python(code: str, **kwargs: object) -> Model:
    return open_model(f"command:{sys.executable} -c {shlex.quote(code)}", **kwargs)  # type: ignore[arg-type]


def failure(model: Model, call: Call = CALL) -> ModelError:
    with pytest.raises(ModelError) as caught:
        model.complete(call)
    return caught.value


def test_the_prompt_comes_in_on_stdin_and_the_reply_out_on_stdout() -> None:
    answer = open_model("command:cat").complete(CALL)
    assert answer.text == "system part\n\nstable part\nnew part"
    assert answer.raw == answer.text.encode()
    assert answer.model == "command:cat"
    assert answer.finish is None
    assert answer.seconds > 0


def test_its_price_is_unknown_and_its_tokens_are_estimated() -> None:
    answer = open_model("command:cat").complete(CALL)
    assert answer.usd is None
    assert answer.cost(CALL) == Cost(2 * -(-len(CALL.text) // 3), None)


def test_a_long_prompt_that_is_never_read_does_not_block() -> None:
    call = dataclasses.replace(CALL, prompt="x" * 2_000_000)
    assert open_model("command:echo hi").complete(call).text == "hi\n"


def test_bytes_that_are_no_utf8_are_kept_and_reach_no_program() -> None:
    answer = open_model(r"command:printf '```cpp\nvoid run() { /*\377*/ }\n```\n'").complete(CALL)
    assert b"\xff" in answer.raw
    assert answer.text.encode("utf-8", "surrogateescape") == answer.raw
    reply = parse_program(answer.text, languages=["cpp"], entry_point="run")
    assert isinstance(reply, Refusal)


def test_the_working_folder_is_empty_and_gone_afterwards() -> None:
    code = "import os; print(os.getcwd(), os.listdir()); open('left', 'w').write('x')"
    folder, listing = python(code).complete(CALL).text.split(" ", 1)
    assert listing == "[]\n"
    assert not Path(folder).exists()


def test_the_environment_holds_no_key_that_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "two")
    monkeypatch.setenv("TOOL_KEY", "three")
    code = "import os; print(sorted(os.environ))"
    text = python(code, pass_env=["TOOL_KEY"]).complete(CALL).text
    assert "'TOOL_KEY'" in text
    assert "'PATH'" in text
    assert "OPENAI_API_KEY" not in text
    assert "AWS_SECRET_ACCESS_KEY" not in text


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("Segmentation fault", ModelUnavailable),
        ("Error: rate limit reached, try later", RateLimited),
        ("You have hit your usage limit", QuotaExhausted),
        ("Not logged in. Please run /login", BadKey),
    ],
)
def test_a_failing_program_is_an_error_with_its_last_words(said: str, kind: type[ModelError]) -> None:
    error = failure(python(f"import sys; print('partial'); sys.exit({said!r})"))
    assert type(error) is kind
    assert "exited with 1" in str(error)
    assert said in str(error)
    assert error.raw == b"partial\n"
    assert error.maybe_billed


def test_a_program_ended_by_a_signal_is_an_error() -> None:
    assert "ended by signal 9" in str(failure(python("import os; os.kill(os.getpid(), 9)")))


def test_a_hanging_program_and_its_children_are_killed_at_the_deadline(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time; child = subprocess.Popen(['sleep', '600']);"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}'); print('thinking', flush=True);"
        "time.sleep(600)"
    )
    error = failure(python(code), dataclasses.replace(CALL, timeout_s=1.5))
    assert type(error) is ModelTimeout
    assert error.raw == b"thinking\n"
    for pid in (tmp_path / "pids").read_text().split():
        assert _gone(int(pid)), f"process {pid} is still alive"


def test_a_child_left_behind_neither_delays_the_reply_nor_survives(tmp_path: Path) -> None:
    code = (
        "import subprocess; child = subprocess.Popen(['sleep', '600']);"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid)); print('done')"
    )
    assert python(code).complete(CALL).text == "done\n"
    assert _gone(int((tmp_path / "pid").read_text()))


def _gone(pid: int) -> bool:
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_stopped(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MAX_OUTPUT_BYTES", 1_000_000)
    error = failure(python(f"import sys\nwhile True: sys.{stream}.write('x' * 100000)"))
    assert type(error) is BadAnswer
    assert "printed more than 1,000,000 bytes" in str(error)


def test_output_of_a_tool_can_be_read_in_its_own_way() -> None:
    def read(output: bytes, call: Call) -> Answer:
        return Answer(output.decode().upper(), output, "stop", "tool-1", tokens_in=3, tokens_out=4, usd=0.5)

    answer = commands.CommandModel("echo hi", read_output=read).complete(CALL)
    assert (answer.text, answer.model, answer.cost(CALL)) == ("HI\n", "tool-1", Cost(7, 0.5))
    assert answer.seconds > 0


def test_no_descriptor_of_ours_is_handed_on() -> None:
    secret = os.open("/dev/null", os.O_RDONLY)
    try:
        os.set_inheritable(secret, False)
        text = python("import os; print(os.listdir('/proc/self/fd'))").complete(CALL).text
    finally:
        os.close(secret)
    assert f"'{secret}'" not in text or secret <= 3
