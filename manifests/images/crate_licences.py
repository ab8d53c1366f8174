"""Copies the licence files of crates:  cargo metadata ... | crate_licences.py FOLDER"""
import json
import os
import shutil
import sys

for package in json.load(sys.stdin)["packages"]:
    if package["source"] is None:  # ours
        continue
    source = os.path.dirname(package["manifest_path"])
    files = [name for name in os.listdir(source) if name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"))]
    if not files:
        sys.exit(f"crate_licences.py: {package['name']} {package['version']} ({package['license']}) has no licence file")
    target = os.path.join(sys.argv[1], f"{package['name']}-{package['version']}")
    os.makedirs(target, exist_ok=True)
    for name in files:
        path = os.path.join(source, name)
        if os.path.isfile(path):
            shutil.copyfile(path, os.path.join(target, name))
