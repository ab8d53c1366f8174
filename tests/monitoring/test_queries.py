"""Every query of a panel and of a rule, against a scrape of the real binaries by a real Prometheus:  test_queries.py URL HOOKS

URL is a server that is Ready, HOOKS the program ashlar-hooks."""
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import yaml

from files import panel_queries, rule_spec, rules
from promql import names

URL, HOOKS = sys.argv.pop(1), sys.argv.pop(1)
TARGET_LABELS = {"namespace", "pod", "job", "instance"}  # a PodMonitor gives them

# The metrics that are kube-state-metrics' own: a sample of each.
KUBERNETES = """\
kube_pod_container_resource_requests{namespace="n",pod="p",container="ashlar",resource="nvidia_com_gpu",unit="integer",node="a"} 1
kube_pod_container_status_running{namespace="n",pod="p",container="ashlar"} 1
kube_pod_status_scheduled{namespace="n",pod="p",condition="false"} 0
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class KubeStateMetrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(KUBERNETES.encode())

    def log_message(self, *_):
        pass


class Hooks:
    """The program itself, asked about one model."""

    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen([HOOKS, "serve", "--host", "127.0.0.1", "--port", str(self.port), "--resolver", "127.0.0.1:9"],
                                        stderr=subprocess.DEVNULL)
        model = {"apiVersion": "ashlar.dev/v1alpha1", "kind": "InferenceModel", "metadata": {"name": "m", "namespace": "n"},
                 "spec": {"model": {"source": {"builtin": "demo"}}}}
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{self.url()}/sync", json.dumps({"parent": model}).encode(), timeout=10).close()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.kill()
        self.process.wait()


class Prometheus:
    def __init__(self, hooks):
        self.folder = tempfile.TemporaryDirectory()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), KubeStateMetrics)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        address = urllib.parse.urlparse(URL).netloc
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [
                {"job_name": "n/m", "static_configs": [{"targets": [address], "labels": {"namespace": "n", "pod": "p"}}]},
                {"job_name": "n/h", "static_configs": [
                    {"targets": [urllib.parse.urlparse(hooks.url()).netloc], "labels": {"namespace": "n", "pod": "h"}}]},
                {"job_name": "kubernetes", "honor_labels": True,
                 "static_configs": [{"targets": [f"127.0.0.1:{self.server.server_port}"]}]},
            ],
        }
        for name, value in (("rules", rule_spec()), ("prometheus", config)):
            with open(f"{self.folder.name}/{name}.yaml", "w") as file:
                yaml.safe_dump(value, file)
        self.port = free_port()
        with open(f"{self.folder.name}/log", "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={self.folder.name}/prometheus.yaml", f"--storage.tsdb.path={self.folder.name}/data",
                 f"--web.listen-address=127.0.0.1:{self.port}"], stdout=log, stderr=log)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def get(self, path, **arguments):
        address = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is not ready yet
                raise
            raise AssertionError(error.read().decode()) from error

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def wait_scrapes(self, seconds=120):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                counts = self.query("count_over_time(ashlar_build_info[5m]) and on () (count_over_time(ashlar_hook_build_info[5m]) >= 3) "
                                    "and on () count_over_time(kube_pod_status_scheduled[5m])")
                if counts and float(counts[0]["value"][1]) >= 3:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        with open(f"{self.folder.name}/log") as log:
            raise AssertionError("Prometheus scraped nothing:\n" + log.read())


class Queries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hooks = Hooks()
        cls.addClassCleanup(hooks.stop)
        cls.hooks_page = urllib.request.urlopen(f"{hooks.url()}/metrics", timeout=10).read()
        cls.prometheus = Prometheus(hooks)
        cls.addClassCleanup(cls.prometheus.stop)
        cls.prometheus.wait_scrapes()
        cls.labels = {}
        for series in cls.prometheus.get("series", **{"match[]": '{__name__=~"ashlar_.+|vllm:.+|kube_.+"}'}):
            cls.labels.setdefault(series.pop("__name__"), set()).update(series)

    def check_names(self, where, expression):
        metrics, grouped = names(expression)
        self.assertTrue(metrics, where)
        for metric, matched in metrics.items():
            self.assertIn(metric, self.labels, where)
            self.assertLessEqual(matched, self.labels[metric], f"{where}: {metric}")
        self.assertLessEqual(grouped, set().union(*(self.labels[metric] for metric in metrics)), where)

    def test_the_scrape_carries_what_a_pod_monitor_gives(self):
        for metric, labels in self.labels.items():
            if metric.startswith("ashlar_"):
                self.assertLessEqual(TARGET_LABELS, labels, metric)

    def test_the_hooks_page_passes_promtools_lint(self):
        result = subprocess.run(["promtool", "check", "metrics"], input=self.hooks_page, capture_output=True)
        self.assertEqual((result.returncode, result.stderr), (0, b""), result.stdout)

    def test_panels_name_metrics_and_labels_that_exist(self):
        for where, expression, _ in panel_queries():
            self.check_names(where, expression)

    def test_rules_name_metrics_and_labels_that_exist(self):
        for rule in rules():
            self.check_names(rule.get("alert") or rule["record"], rule["expr"])

    def test_panels_show_something(self):
        for where, expression, legend in panel_queries():
            expression = expression.replace("$__rate_interval", "30s").replace("$namespace", "n").replace("$job", "n/m").replace("$hooks", "n/h")
            result = self.prometheus.query(expression)
            self.assertTrue(result, f"{where}: {expression}")
            for series in result:
                self.assertLessEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)), set(series["metric"]), where)

    def test_rules_are_evaluated(self):
        groups = self.prometheus.get("rules")["groups"]
        self.assertEqual(sum(len(group["rules"]) for group in groups), len(rules()))
        for group in groups:
            for rule in group["rules"]:
                self.assertIn(rule["health"], ("ok", "unknown"), rule)  # unknown: its turn has not come
                self.assertEqual(rule.get("lastError", ""), "", rule)

    def test_an_unknown_metric_or_label_is_noticed(self):
        for wrong in ("ashlar_redy", 'ashlar_ready{chek="spec"}', "sum by (chek) (ashlar_ready)", "rate(ashlar_step_total[5m])"):
            with self.assertRaises(AssertionError):
                self.check_names(wrong, wrong)


if __name__ == "__main__":
    unittest.main()
