"""What is recorded is answered again, word for word; what is missing is said."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksearch.errors import ModelSetupError, TranscriptExhausted
from ksearch.models import Answer, Call, Recorder, TranscriptModel, open_model
from ksearch.models.transcript import as_bytes, to_line


class Canned:
    """Answers from a list."""

    name = "canned"
    context_tokens = 4096

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def complete(self, call: Call) -> Answer:
        return self.answers.pop(0)


def answer(text: str, **changes: object) -> Answer:
    return dataclasses.replace(Answer(text, b"raw", "stop", "m-1", 10, 5, 3, 1, 0.25, 1.5), **changes)  # type: ignore[arg-type]


def record(path: Path, *pairs: tuple[Call, Answer]) -> None:
    recorder = Recorder(Canned(*(given for _, given in pairs)), path)
    for call, given_answer in pairs:
        assert recorder.complete(call) == given_answer


def call(request_id: str = "r1", role: str = "writer", **changes: object) -> Call:
    return dataclasses.replace(Call(role, f"prompt of {request_id}", request_id=request_id), **changes)  # type: ignore[arg-type]


def test_a_recorded_answer_comes_back_whole(tmp_path: Path) -> None:
    given_answer = answer("text\r\n\x00é", raw=b'{"body": "\xff"}')
    record(tmp_path / "t", (call(), given_answer))
    assert TranscriptModel(tmp_path / "t").complete(call()) == given_answer


texts = (
    st.text()
    | st.text(alphabet=st.characters(categories=["Cs"]))
    | st.binary().map(lambda b: b.decode("utf-8", "surrogateescape"))
).filter(lambda text: json.loads(json.dumps(text)) == text)  # two halves of a pair are one character to JSON


@given(texts, st.none() | st.binary(), st.sampled_from([None, "stop", "length"]), st.none() | st.floats(0, 1e4))
def test_any_answer_at_all_comes_back_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, raw: bytes | None, finish: str | None, usd: float | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    if raw is None:
        raw = as_bytes(text)
    given_answer = answer(text, raw=raw, finish=finish, usd=usd)
    path.write_bytes(to_line(call(), given_answer))
    assert TranscriptModel(path).complete(call()) == given_answer


def test_replies_are_taken_by_request_whatever_the_order(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path, (call("r1"), answer("a")), (call("r2"), answer("b")), (call("r2", "planner"), answer("c")))
    model = TranscriptModel(path)
    assert model.by == "request"
    assert model.complete(call("r2")).text == "b"
    assert model.complete(call("r2", "planner")).text == "c"
    assert model.complete(call("r1")).text == "a"


def test_a_request_asked_again_gets_its_next_reply(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path, (call(), answer("refused")), (call(), answer("good")))
    model = TranscriptModel(path)
    assert [model.complete(call()).text for _ in range(2)] == ["refused", "good"]
    # A resumed run says how many replies it has had.
    assert TranscriptModel(path).complete(call(answers_before=1)).text == "good"


def test_a_reply_that_is_missing_is_said_and_not_invented(tmp_path: Path) -> None:
    path = tmp_path / "t"
    record(path, (call(), answer("a")))
    model = TranscriptModel(path)
    with pytest.raises(TranscriptExhausted, match="has 0 replies to request r9 of the writer") as caught:
        model.complete(call("r9"))
    assert not caught.value.transient
    model.complete(call())
    with pytest.raises(TranscriptExhausted, match="has 1 replies to request r1 of the writer, and number 2"):
        model.complete(call())


def test_a_transcript_by_hand_is_taken_in_order_of_the_role(tmp_path: Path) -> None:
    path = tmp_path / "t"
    lines = [("planner", "p1"), ("writer", "w1"), ("writer", "w2")]
    path.write_text("".join(json.dumps({"role": role, "text": text}) + "\n" for role, text in lines))
    model = open_model(f"transcript:{path}")
    assert [model.complete(call(role="writer")).text for _ in range(2)] == ["w1", "w2"]
    reply = model.complete(call(role="planner"))
    assert (reply.text, reply.usd, reply.tokens_in, reply.finish) == ("p1", None, None, None)
    resumed = TranscriptModel(path)
    resumed.skip("writer", 1)
    assert resumed.complete(call("anything")).text == "w2"
    with pytest.raises(ModelSetupError, match="by order"):
        TranscriptModel(path, by="request")


def test_a_prompt_that_differs_from_the_recorded_one_is_noted(tmp_path: Path) -> None:
    record(tmp_path / "t", (call(), answer("a")))
    assert TranscriptModel(tmp_path / "t").complete(call()).notes == ()
    other = TranscriptModel(tmp_path / "t").complete(call(prompt="new template"))
    assert other.notes == ("recorded for another prompt",)


def test_a_line_that_a_crash_left_unfinished_is_passed_over_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    whole = to_line(call("r1"), answer("a"))
    for size in range(len(whole)):
        path.write_bytes(whole + to_line(call("r2"), answer("b"))[:size])
        assert TranscriptModel(path).complete(call("r1")).text == "a"
        with pytest.raises(TranscriptExhausted):
            TranscriptModel(path).complete(call("r9"))
    record(path, (call("r3"), answer("c")))
    model = TranscriptModel(path)
    assert (model.complete(call("r1")).text, model.complete(call("r3")).text) == ("a", "c")
    assert len(path.read_bytes().splitlines()) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"nonsense", "line 2: not a JSON object"),
        (b"[]", "line 2: not a JSON object"),
        (b"\xff", "line 2: not a JSON object"),
        (b'{"role": "writer"}', 'line 2: "text" must be a string'),
        (b'{"role": 1, "text": ""}', '"role" must be a string'),
        (b'{"role": "w", "text": "", "format": 9}', "format 9 is unknown"),
        (b'{"role": "w", "text": "", "usd": "free"}', '"usd" must be a number'),
        (b'{"role": "w", "text": "", "usd": NaN}', '"usd" must be a number'),
        (b'{"role": "w", "text": "", "tokens_in": -1}', '"tokens_in" must be a number'),
        (b"[" * 100_000, "line 2: not a JSON object"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, line: bytes, says: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"role": "writer", "text": "a"}\n' + line + b"\n")
    with pytest.raises(ModelSetupError, match=r"bad\.jsonl") as caught:
        TranscriptModel(path)
    assert says in str(caught.value)


def test_several_threads_and_recorders_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "t"

    def work(name: str) -> None:
        record(path, *((call(f"{name}{i}"), answer("x" * 3000)) for i in range(10)))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    model = TranscriptModel(path)
    assert all(model.complete(call(f"{name}{i}")).text == "x" * 3000 for name in "abcd" for i in range(10))


def test_any_model_can_be_recorded_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "t"
    model = open_model("command:echo hi", record=path)
    assert model.name == "command:echo hi"
    model.complete(call())
    assert TranscriptModel(path).complete(call()).text == "hi\n"
