"""Commands that the README shows are run as they stand."""
import os
import re
import shlex
import subprocess
import unittest

from harness import ASHLAR, ROOT, Server

# Ids of the reported bugs that docs/pains.md answers, by family.
REPORTED = {"HE": (1, 3, 4, 5, 8, 9, 11, 13, 15), "OP": (1, 2, 4, 5, 6, 7, 10, 13, 15), "PR": (1, 2, 3, 4, 6, 8), "ME": (1, 2, 4, 6, 9)}


def command_lines():
    """Shell lines of the README's fenced blocks, continuations joined."""
    with open(os.path.join(ROOT, "README.md")) as file:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.S | re.M)
    text = "\n".join(block for language, block in blocks if not language).replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith(("build/", "curl ", "make "))]


class Readme(unittest.TestCase):
    def test_commands_of_the_binary_succeed(self):
        commands = [line for line in command_lines() if line.startswith("build/") and " serve " not in line]
        self.assertGreaterEqual(len(commands), 4)
        for line in commands:
            words = shlex.split(line)
            result = subprocess.run([ASHLAR, *words[1:]], cwd=ROOT, capture_output=True, text=True, timeout=60)
            self.assertEqual(result.returncode, 0, line + "\n" + result.stderr)
            self.assertTrue(result.stdout, line)

    def test_the_question_is_answered(self):
        (line,) = [line for line in command_lines() if line.startswith("curl ")]
        with Server("name: demo\nsource: {builtin: demo}\n") as server:
            result = subprocess.run(shlex.split(line.replace(":8000", f":{server.port}")), capture_output=True, text=True, timeout=60)
            self.assertIn("data: [DONE]", result.stdout)

    def test_links_lead_somewhere(self):
        pages = [os.path.join(ROOT, "README.md")]
        for folder, _, files in os.walk(os.path.join(ROOT, "docs")):
            pages += [os.path.join(folder, name) for name in files if name.endswith(".md")]
        for page in pages:
            with open(page) as file:
                targets = re.findall(r"\]\((?!http)([^)#]+)", file.read())
            for target in targets:
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), target)), f"{page}: {target}")

    def test_tests_that_are_named_exist(self):
        with open(os.path.join(ROOT, "docs", "pains.md")) as file:
            named = set(re.findall(r"`(\w+\.\w+|test_\w+)`", file.read()))
        there = set()
        for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
            for name in files:
                if name.endswith((".cc", ".py")):
                    with open(os.path.join(folder, name)) as file:
                        text = file.read()
                    there |= {f"{suite}.{case}" for suite, case in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", text, re.M)}
                    there |= set(re.findall(r"def (test_\w+)", text))
        self.assertGreater(len(named), 40)
        self.assertEqual(named - there, set())

    def test_every_reported_bug_is_answered(self):
        with open(os.path.join(ROOT, "docs", "pains.md")) as file:
            rows = re.findall(r"^\| ([A-Z]{2})-(\d+) \|.*\| ([^|]+) \|$", file.read(), re.M)
        self.assertEqual([(family, int(number)) for family, number, _ in rows],
                         [(family, number) for family, numbers in REPORTED.items() for number in numbers])
        for family, number, answer in rows:
            self.assertRegex(answer, r"`(\w+\.\w+|test_\w+)`|^does not apply: \w", f"{family}-{number}")

    def test_make_targets_exist(self):
        with open(os.path.join(ROOT, "Makefile")) as file:
            targets = set(re.findall(r"^([a-z0-9-]+):", file.read(), re.M))
        shown = {line.split()[1] for line in command_lines() if line.startswith("make ")}
        self.assertTrue(shown and shown <= targets, shown - targets)


if __name__ == "__main__":
    unittest.main()
