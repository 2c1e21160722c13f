"""What is vendored is what the manifest says, with its licence."""

from __future__ import annotations

import hashlib
import json
import re

from ksearch.web.app import STATIC

VENDOR = STATIC / "vendor"
MANIFEST = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))


def test_each_vendored_file_is_the_one_in_the_manifest() -> None:
    listed = {file["name"]: file["sha256"] for package in MANIFEST["packages"] for file in package["files"]}
    there = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in VENDOR.iterdir() if p.name != "manifest.json"}
    assert there == listed


def test_each_package_has_its_version_and_licence() -> None:
    for package in MANIFEST["packages"]:
        assert re.fullmatch(r"\d+\.(x|\d+\.\d+)", package["version"])
        assert package["licence"] in ("MIT", "Apache-2.0", "BSD-3-Clause", "ISC")
        licences = [f["name"] for f in package["files"] if f["name"].startswith("LICENSE.")]
        assert licences or package.get("licence_in"), package["name"]
        for name in licences:
            assert len((VENDOR / name).read_text(encoding="utf-8")) > 500


def test_modules_import_only_what_is_served_beside_them() -> None:
    for path in (STATIC / "js").glob("*.js"):
        for target in re.findall(r'^(?:import|export)[^"\n]*?from "([^"]+)"|^import "([^"]+)"', path.read_text(), re.M):
            name = target[0] or target[1]
            assert name.startswith(("./", "../")), f"{path.name} imports {name}"
            assert (path.parent / name).resolve().is_file(), f"{path.name} imports {name}"


def test_everything_served_is_small() -> None:
    sizes = {p: p.stat().st_size for p in STATIC.rglob("*") if p.is_file()}
    assert sum(sizes.values()) < 400_000
