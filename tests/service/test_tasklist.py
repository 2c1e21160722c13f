"""The tasks of a campaign, by folder or list. What goes wrong is in tests/cli/test_campaign.py."""

from __future__ import annotations

from pathlib import Path

from ksearch.service.tasklist import read_tasks


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "task.toml").write_text("never read here")
    return path


def test_a_folder_gives_its_task_folders_and_files_of_other_formats_by_name(tmp_path: Path) -> None:
    folder(tmp_path / "b.two")
    folder(tmp_path / "a")
    (tmp_path / "1_Square_matmul.py").write_text("never read here")
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "notes.txt").write_text("no task")
    (tmp_path / "empty").mkdir()
    found = read_tasks(str(tmp_path))
    assert [t.name for t in found] == ["1_Square_matmul", "a", "b-two"]
    assert found[1].where == str(tmp_path / "a")


def test_a_list_keeps_its_order_and_finds_folders_beside_itself_before_bundled_tasks(tmp_path: Path) -> None:
    folder(tmp_path / "gemm")
    far = folder(tmp_path / "elsewhere" / "mine")
    (tmp_path / "list.txt").write_text(f"trimul\ngemm # ours\n\n{far}\n")
    found = read_tasks(str(tmp_path / "list.txt"))
    assert [t.name for t in found] == ["trimul", "gemm", "mine"]
    assert [t.where for t in found] == ["trimul", str(tmp_path / "gemm"), str(far)]


def test_tasks_of_one_name_keep_their_own_names_in_whatever_order_they_are_listed(tmp_path: Path) -> None:
    for place in ("x", "y"):
        folder(tmp_path / place / "gate")
    names = []
    for order in ("x/gate\ny/gate\n", "y/gate\nx/gate\n"):
        (tmp_path / "list.txt").write_text(order)
        names.append({t.where: t.name for t in read_tasks(str(tmp_path / "list.txt"))})
    assert names[0] == names[1]
    assert len(set(names[0].values())) == 2
