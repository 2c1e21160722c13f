"""Small fakes of coding agents' command lines: each takes the flags that its documentation names, and no others.

A fake answers with what it saw. FAKE_MODE (passed on by name) makes it fail in the ways that are known of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

SHARED = '''
import argparse, json, os, sys

mode = os.environ.get("FAKE_MODE", "")


def seen(options):
    """What there is to check, as the reply."""
    given = {k: v for k, v in vars(options).items() if v not in (None, False, [])}
    return json.dumps({"options": given, "stdin": sys.stdin.read(), "folder": os.listdir(), "env": sorted(os.environ)})


def usage(parser):
    parser.error = lambda message: (sys.stderr.write(f"error: {message}\\n"), sys.exit(2))
    return parser
'''

CLAUDE = """
p = usage(argparse.ArgumentParser(allow_abbrev=False))
p.add_argument("-p", "--print", action="store_true")
p.add_argument("--output-format", choices=["text", "json", "stream-json"], default="text")
p.add_argument("--tools", default=None)
p.add_argument("--strict-mcp-config", action="store_true")
p.add_argument("--no-session-persistence", action="store_true")
p.add_argument("--system-prompt")
p.add_argument("--json-schema", type=json.loads)
p.add_argument("--model")
p.add_argument("prompt", nargs="?")
o = p.parse_args()
assert o.print and o.tools == "" and o.no_session_persistence and o.strict_mcp_config and o.prompt is None
reply = seen(o)
body = {
    "type": "result", "subtype": "success", "is_error": False, "duration_ms": 1500, "num_turns": 1, "result": reply,
    "session_id": "s", "stop_reason": "end_turn", "total_cost_usd": 0.0123,
    "usage": {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 900,
              "output_tokens": 70},
    "modelUsage": {"claude-fake-1": {"inputTokens": 5}},
}
if o.json_schema:
    body |= {"result": "see structured_output", "structured_output": {"edits": [], "assessment": reply}}
failures = {
    "limit": "You've hit your limit \\u00b7 resets 3pm", "login": "Invalid API key \\u00b7 Please run /login",
    "busy": "API Error: 529 overloaded", "empty": "Credit balance is too low",
}
if mode in failures:
    body |= {"is_error": True, "result": failures[mode]}
if mode == "turns":
    body |= {"is_error": True, "subtype": "error_max_structured_output_retries"}
    del body["result"]
if mode == "refusal":
    body |= {"stop_reason": "refusal", "result": ""}
print(json.dumps(body) if o.output_format == "json" else reply)
sys.exit(1 if mode in failures else 0)
"""

CODEX = """
p = usage(argparse.ArgumentParser(allow_abbrev=False))
p.add_argument("command", choices=["exec"])
p.add_argument("--json", action="store_true")
p.add_argument("--ephemeral", action="store_true")
p.add_argument("-s", "--sandbox", choices=["read-only", "workspace-write", "danger-full-access"])
p.add_argument("--skip-git-repo-check", action="store_true")
p.add_argument("--color", choices=["always", "never", "auto"])
p.add_argument("-c", "--config", action="append")
p.add_argument("-o", "--output-last-message")
p.add_argument("--output-schema")
p.add_argument("-m", "--model")
p.add_argument("prompt", nargs="?")
o = p.parse_intermixed_args()
assert o.json and o.ephemeral and o.sandbox == "read-only" and o.skip_git_repo_check and o.prompt == "-"
reply = seen(o)


def event(type, **more):
    print(json.dumps({"type": type, **more}), flush=True)


event("thread.started", thread_id="t")
event("turn.started")
event("item.completed", item={"id": "0", "type": "reasoning", "text": "hm"})
if mode == "limit":
    event("error", message="You've hit your usage limit. Try again at 3:00 PM.")
    event("turn.failed", error={"message": "You've hit your usage limit. Try again at 3:00 PM."})
    sys.exit(1)
event("item.completed", item={"id": "1", "type": "agent_message", "text": "on my way"})
event("item.completed", item={"id": "2", "type": "agent_message", "text": reply})
event("turn.completed", usage={"input_tokens": 1200, "cached_input_tokens": 1000, "output_tokens": 300,
                               "reasoning_output_tokens": 250})
if mode != "no file":
    open(o.output_last_message, "w").write(reply)
"""

GEMINI = """
p = usage(argparse.ArgumentParser(allow_abbrev=False))
p.add_argument("-o", "--output-format", choices=["text", "json", "stream-json"], default="text")
p.add_argument("-e", "--extensions", nargs="+")
p.add_argument("--allowed-mcp-server-names", nargs="+")
p.add_argument("-p", "--prompt")
p.add_argument("-m", "--model")
o = p.parse_args()
assert o.prompt and o.extensions == ["none"] and os.environ["GEMINI_CLI_TRUST_WORKSPACE"] == "true"
reply = seen(o)
tokens = {"prompt": 800, "candidates": 60, "total": 900, "cached": 500, "thoughts": 40, "tool": 0}
small = {"prompt": 30, "candidates": 2, "total": 32, "cached": 0, "thoughts": 0, "tool": 0}
body = {"session_id": "s", "response": reply, "stats": {
    "models": {"gemini-router": {"api": {}, "tokens": small}, "gemini-fake-pro": {"api": {}, "tokens": tokens}},
    "tools": {"totalCalls": 0}, "files": {}}}
if mode == "limit":
    body = {"error": {"type": "Error", "message": "Quota exceeded for quota metric requests per day", "code": 429}}
if mode == "limit":
    sys.exit(print(json.dumps(body, indent=2), file=sys.stderr) or 1)
print("Loaded cached credentials.")
print(json.dumps(body, indent=2))
"""

QWEN = """
p = usage(argparse.ArgumentParser(allow_abbrev=False))
p.add_argument("-o", "--output-format", choices=["text", "json", "stream-json"], default="text")
p.add_argument("--system-prompt")
p.add_argument("--chat-recording", choices=["true", "false"])
p.add_argument("-e", "--extensions", nargs="+")
p.add_argument("--allowed-mcp-server-names", nargs="+")
p.add_argument("-m", "--model")
o = p.parse_args()
assert o.output_format == "json" and o.chat_recording == "false"
assert not json.load(open(os.environ["QWEN_CODE_SYSTEM_DEFAULTS_PATH"]))["memory"]["enableManagedAutoMemory"]
reply = seen(o)
usage = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 400, "total_tokens": 1050}
result = {"type": "result", "subtype": "success", "is_error": False, "result": reply, "usage": usage}
if mode == "limit":
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True,
              "error": {"message": "[API Error: 429 insufficient_quota]"}}
if mode == "bad key":
    result |= {"result": "[API Error: 401 invalid api key]", "usage": {"input_tokens": 0, "output_tokens": 0}}
print(json.dumps([
    {"type": "system", "subtype": "session_start", "model": "qwen-fake", "session_id": "s"},
    {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": reply}]}},
    result,
]))
sys.exit(1 if mode == "limit" else 0)
"""

OPENCODE = """
p = usage(argparse.ArgumentParser(allow_abbrev=False))
p.add_argument("command", choices=["run"])
p.add_argument("--format", choices=["default", "json"], default="default")
p.add_argument("--title", required=True)
p.add_argument("-m", "--model")
p.add_argument("message", nargs="*")
o = p.parse_args()
assert o.format == "json" and json.loads(os.environ["OPENCODE_PERMISSION"]) == {"*": "deny"} and not o.message
reply = seen(o)


def event(type, **more):
    print(json.dumps({"type": type, "timestamp": 1, "sessionID": "s", **more}), flush=True)


event("step_start", part={"type": "step-start"})
if mode == "limit":
    event("error", error={"name": "APIError", "data": {"message": "Too Many Requests: rate limit exceeded"}})
    sys.exit(1)
event("text", part={"type": "text", "text": reply, "time": {"end": 2}})
event("step_finish", part={"type": "step-finish", "reason": "stop", "cost": 0.002, "tokens": {
    "input": 10, "output": 20, "reasoning": 5, "cache": {"read": 600, "write": 30}}})
"""

FAKES = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "qwen": QWEN, "opencode": OPENCODE}


def install(folder: Path) -> None:
    """Put all of them into a folder, as programs."""
    for name, body in FAKES.items():
        file = folder / name
        file.write_text(f"#!{sys.executable}\n{SHARED}\n{body}")
        file.chmod(0o755)
