"""Dashboards are whole, known to Grafana's own types and made from their source; each alert is tested both ways and explained."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from files import FOLDER, HERE, ROOT, dashboards, rules
from promql import names

UNITS = {"short", "s", "bytes", "percentunit", "reqps", "ops", "cps"}


def unknown(written, read, path):
    """Paths of what Grafana's types do not carry from `written` to `read`."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key, value in written.items():
            yield from unknown(value, read[key], f"{path}.{key}") if key in read else [f"{path}.{key}"]
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for i, value in enumerate(written):
            yield from unknown(value, read[i], f"{path}[{i}]")
    elif written != read:
        yield path


class Dashboards(unittest.TestCase):
    def test_are_made_from_their_source(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, f"{ROOT}/charts/dashboards.py", folder], check=True)
            self.assertEqual(sorted(os.listdir(folder)), [f"{uid}.json" for uid in dashboards()])
            for name in os.listdir(folder):
                with open(f"{folder}/{name}") as made, open(f"{FOLDER}/{name}") as committed:
                    self.assertEqual(made.read(), committed.read(), name)

    def test_hold_only_what_grafanas_types_know(self):
        plugins.register_default_plugins()
        for uid, dashboard in dashboards().items():
            read = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
            self.assertEqual(list(unknown(dashboard, read, uid)), [f"{uid}.id"])  # an id is Grafana's own: null
            self.assertIsNone(dashboard["id"])

    def test_are_found_and_shown(self):
        titles = [dashboard["title"] for dashboard in dashboards().values()]
        self.assertEqual(len(titles), len(set(titles)))
        for uid, dashboard in dashboards().items():
            self.assertEqual(dashboard["uid"], uid)
            self.assertLessEqual(len(uid), 40)
            self.assertEqual(dashboard["schemaVersion"], 39)
            self.assertNotIn("__inputs", dashboard)
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)), uid)

    def test_panels_do_not_overlap(self):
        for uid, dashboard in dashboards().items():
            taken = set()
            for panel in dashboard["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertTrue(all(x < 24 for x, _ in cells), panel["title"])
                self.assertFalse(cells & taken, f"{uid}: {panel['title']}")
                taken |= cells

    def test_panels_have_queries_units_and_name_their_metrics(self):
        for uid, dashboard in dashboards().items():
            for panel in dashboard["panels"]:
                where = f"{uid}: {panel['title']}"
                self.assertTrue(panel["targets"], where)
                self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, where)
                letters = [target["refId"] for target in panel["targets"]]
                self.assertEqual(len(letters), len(set(letters)), where)
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${datasource}"}, where)
                    for metric in names(target["expr"])[0]:
                        if metric.startswith("ashlar_") and metric not in ("ashlar_build_info", "ashlar_draining"):
                            self.assertIn(metric.removesuffix("_bucket"), panel["description"], where)
                    self.assertNotRegex(target["expr"], r"\[\d", where)  # a rate over a fixed time is wrong at most zooms

    def test_every_variable_is_used_and_every_used_one_is_there(self):
        for uid, dashboard in dashboards().items():
            there = {variable["name"] for variable in dashboard["templating"]["list"]}
            for panel in dashboard["panels"]:
                used = set(re.findall(r"\$\{?(\w+)", json.dumps(panel))) - {"__rate_interval"}
                self.assertEqual(used, there, f"{uid}: {panel['title']}")


class Alerts(unittest.TestCase):
    def test_each_is_seen_to_fire_and_to_be_silent(self):
        with open(f"{HERE}/rules_test.yaml") as file:
            cases = [case for test in yaml.safe_load(file)["tests"] for case in test.get("alert_rule_test", [])]
        alerts = {rule["alert"] for rule in rules() if "alert" in rule}
        self.assertEqual({case["alertname"] for case in cases if case["exp_alerts"]}, alerts)
        self.assertEqual({case["alertname"] for case in cases if not case["exp_alerts"]}, alerts)

    def test_each_recorded_series_is_tested(self):
        with open(f"{HERE}/rules_test.yaml") as file:
            text = file.read()
        for rule in rules():
            self.assertIn(rule.get("record", ""), text)

    def test_each_has_a_section_to_read(self):
        with open(f"{ROOT}/docs/operations.md") as file:
            headings = {line.strip("# \n").lower() for line in file if line.startswith("#")}
        for rule in rules():
            if "alert" in rule:
                self.assertEqual(rule["annotations"]["runbook"], f"docs/operations.md#{rule['alert'].lower()}")
                self.assertIn(rule["alert"].lower(), headings)
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))


if __name__ == "__main__":
    unittest.main()
