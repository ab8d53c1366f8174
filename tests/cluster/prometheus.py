"""A Prometheus that scrapes what PodMonitors name. Debian's cannot ask an API server for pods, so they are listed for it."""
import json
import urllib.parse

import yaml

import cluster

ADDRESS = "127.0.0.1", 9090


def targets(c, monitor, port):
    """The pods that the monitor selects, at its port; where a series comes from is in its labels."""
    namespace, labels = monitor["metadata"]["namespace"], monitor["spec"]["selector"]["matchLabels"]
    for pod in c.list("Pod", namespace, ",".join(f"{key}={value}" for key, value in labels.items())):
        for named in pod["spec"]["containers"][0]["ports"]:
            if named["name"] == port:
                yield {"targets": [f"{pod['status']['podIP']}:{named['containerPort']}"],
                       "labels": {"namespace": namespace, "pod": pod["metadata"]["name"]}}


class Prometheus(cluster.Process):
    def __init__(self, c, *monitors):
        jobs = [{"job_name": f"{monitor['metadata']['namespace']}/{monitor['metadata']['name']}", "scrape_interval": "1s",
                 "metrics_path": endpoint["path"], "static_configs": list(targets(c, monitor, endpoint["port"]))}
                for monitor in monitors for endpoint in monitor["spec"]["podMetricsEndpoints"]]
        folder = f"{cluster.WORK}/prometheus"
        with open(f"{folder}.yaml", "w") as file:
            yaml.safe_dump({"scrape_configs": jobs}, file)
        super().__init__("prometheus", "prometheus", f"--config.file={folder}.yaml", f"--storage.tsdb.path={folder}",
                         "--web.listen-address={}:{}".format(*ADDRESS))

    @staticmethod
    def query(expression):
        """[(labels, value)]"""
        status, text = cluster.get(ADDRESS, "/api/v1/query?query=" + urllib.parse.quote(expression))
        if status != 200:
            raise OSError(text)
        return [(series["metric"], float(series["value"][1])) for series in json.loads(text)["data"]["result"]]
