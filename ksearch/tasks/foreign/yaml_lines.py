"""A YAML file whose mistakes can be named by line. PyYAML is imported when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from ksearch.errors import TaskError


class Yaml:
    """One YAML file, and where in it a key stands."""

    def __init__(self, path: Path) -> None:
        try:
            import yaml
        except ImportError:
            raise TaskError(f"{path}: reading it needs PyYAML, which is not installed. `pip install pyyaml`.") from None
        self.path = path
        try:
            text = path.read_text(encoding="utf-8")
            self.root = yaml.compose(text, Loader=yaml.SafeLoader)
            self.data = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path}: cannot be read: {error}") from None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise TaskError(f"{path}:{line}: not valid YAML: {error.problem}. Correct that line.") from None
        if not isinstance(self.data, dict):
            raise TaskError(f"{path}: a mapping is expected, got {type(self.data).__name__}.")

    def fail(self, key: tuple[str | int, ...], problem: str, fix: str = "") -> NoReturn:
        node, line = self.root, None
        for part in key:
            entries = getattr(node, "value", [])
            if isinstance(part, int):
                node = entries[part] if part < len(entries) else None
            else:
                node = next((v for k, v in entries if k.value == part), None)
            if node is None:
                break
            line = node.start_mark.line + 1
        where = f"{self.path}:{line}" if line else str(self.path)
        raise TaskError(f"{where}: {'.'.join(map(str, key))}: {problem}.{' ' + fix if fix else ''}")
