"""What is searched: task folders. `docs/tasks.md` describes the format."""

from ksearch.tasks.folder import Task, bundled_tasks, find_task, load_task, tasks_of, why_not_here
from ksearch.tasks.template import init_from, init_task

__all__ = [
    "Task",
    "bundled_tasks",
    "find_task",
    "init_from",
    "init_task",
    "load_task",
    "tasks_of",
    "why_not_here",
]
