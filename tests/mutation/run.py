#!/usr/bin/env python3
"""Breaks each rule of the planner in turn and shows that a test reddens.

    run.py [--build FOLDER] [--only WORD] [--list]

A mutant is a row of mutants.txt:

    # a comment
    == name of the rule
    file      runtime/plan/validate.cc
    tests     plan_test [plan_test's gtest filter]
    - a line, or several, as they stand in the file
    + what stands there instead; nothing removes it

The tree is copied into FOLDER, so the work tree stays as it is. A mutant that does not build is a mistake of this list
and fails the run, as does one that survives.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))


class Mutant:
    def __init__(self, name):
        self.name, self.file, self.program, self.filter = name, "", "", "*"
        self.old, self.new = [], []


def read_mutants(path):
    mutants = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("== "):
                mutants.append(Mutant(line[3:]))
            elif line.startswith("file "):
                mutants[-1].file = line.split()[1]
            elif line.startswith("tests "):
                words = line.split()
                mutants[-1].program = words[1]
                mutants[-1].filter = words[2] if len(words) > 2 else "*"
            elif line[0] == "-":
                mutants[-1].old.append(line[2:])
            elif line[0] == "+":
                mutants[-1].new.append(line[2:])
            else:
                sys.exit(f"{path}:{number}: {line!r}: ==, file, tests, - or +; see run.py")
    return mutants


def replaced(text, mutant):
    """The text with the mutant's lines changed, whatever their indentation; they must stand there once."""
    lines = text.splitlines()
    wanted = [line.strip() for line in mutant.old]
    places = [i for i in range(len(lines) - len(wanted) + 1) if [line.strip() for line in lines[i:i + len(wanted)]] == wanted]
    if len(places) != 1:
        sys.exit(f"{mutant.name}: its lines stand {len(places)} times in {mutant.file}")
    at = places[0]
    return "\n".join(lines[:at] + mutant.new + lines[at + len(wanted):]) + "\n"


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def build(folder, programs):
    return run(["ninja", "-C", os.path.join(folder, "build"), *sorted(programs)])


def copy_tree(folder):
    files = run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]).stdout.split("\0")
    for name in filter(None, files):
        source, target = os.path.join(ROOT, name), os.path.join(folder, name)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target) or open(source, "rb").read() != open(target, "rb").read():
            shutil.copyfile(source, target)
            shutil.copymode(source, target)


def passes(folder, mutant):
    """The tests' own verdict; a crash and a hang are failures."""
    program = os.path.join(folder, "build", "bin", mutant.program)
    try:
        return run([program, f"--gtest_filter={mutant.filter}", "--gtest_brief=1"], cwd=folder, timeout=300).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def try_mutant(folder, mutant):
    path = os.path.join(folder, mutant.file)
    with open(path) as file:
        original = file.read()
    try:
        with open(path, "w") as file:
            file.write(replaced(original, mutant))
        built = build(folder, [mutant.program])
        if built.returncode != 0:
            errors = re.findall(r"^.*error:.*$", built.stdout, re.M)
            return "does not build: " + (errors[0] if errors else built.stdout[-300:])
        return "SURVIVED" if passes(folder, mutant) else "killed"
    finally:
        with open(path, "w") as file:
            file.write(original)


def main():
    arguments = argparse.ArgumentParser(description="mutation test of the planner")
    arguments.add_argument("--build", default=os.path.join(ROOT, "build", "mutation"))
    arguments.add_argument("--only", default="", help="mutants whose name holds this word")
    arguments.add_argument("--list", action="store_true", help="check that each mutant still applies, and stop")
    options = arguments.parse_args()
    mutants = [mutant for mutant in read_mutants(os.path.join(HERE, "mutants.txt")) if options.only in mutant.name]
    if options.list:
        for mutant in mutants:
            with open(os.path.join(ROOT, mutant.file)) as file:
                replaced(file.read(), mutant)
        print(f"{len(mutants)} mutants apply")
        return 0
    folder = os.path.abspath(options.build)
    copy_tree(folder)
    configured = run(["cmake", "-S", folder, "-B", os.path.join(folder, "build"), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                      "-DCMAKE_CXX_FLAGS=-O0 -w", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"])
    if configured.returncode != 0:
        sys.exit(configured.stdout)
    built = build(folder, {mutant.program for mutant in mutants})
    if built.returncode != 0:
        sys.exit(built.stdout[-3000:])
    for program in sorted({mutant.program for mutant in mutants}):
        whole = Mutant("unchanged")
        whole.program = program
        if not passes(folder, whole):
            sys.exit(f"{program} fails before any mutant: nothing could be shown")
    bad = []
    for number, mutant in enumerate(mutants, 1):
        start = time.monotonic()
        verdict = try_mutant(folder, mutant)
        print(f"{number:3}/{len(mutants)} {verdict:9} {mutant.name} ({time.monotonic() - start:.0f} s)", flush=True)
        if verdict != "killed":
            bad.append(f"{mutant.name}: {verdict}")
    print(f"{len(mutants) - len(bad)} of {len(mutants)} mutants killed")
    for line in bad:
        print("survivor  " + line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
