"""The files under test."""
import glob
import json
import os

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FOLDER = f"{ROOT}/charts/ashlar/files/monitoring"


def dashboards():
    """{file name without .json: dashboard}"""
    found = {}
    for path in sorted(glob.glob(f"{FOLDER}/*.json")):
        with open(path) as file:
            found[os.path.basename(path)[:-5]] = json.load(file)
    return found


def rule_spec():
    with open(f"{FOLDER}/prometheus-rule.yaml") as file:
        return yaml.safe_load(file)["spec"]


def rules():
    return [rule for group in rule_spec()["groups"] for rule in group["rules"]]


def panel_queries():
    """(where, expression, legend) of every query of every panel."""
    for uid, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                yield f"{uid}: {panel['title']}", target["expr"], target["legendFormat"]


if __name__ == "__main__":
    print(yaml.safe_dump(rule_spec(), sort_keys=False, width=1000), end="")
