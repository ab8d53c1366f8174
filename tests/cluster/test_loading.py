"""A load that takes minutes: the pod answers from the start, is not killed for it, and is ready when it can serve."""
import json
import os
import subprocess
import sys
import time
import unittest

import cluster
from case import ClusterTest, lane
from cluster import get, model


def seconds_of(probe):
    return probe["periodSeconds"] * probe["failureThreshold"]


class Loading(ClusterTest):
    @unittest.skipUnless(os.path.exists("/dev/fuse"), "there is no /dev/fuse to make a slow file system with")
    @lane("slow load")
    def test_a_load_of_minutes_kills_nothing(self):
        """PR-02. Weights come at a rate at which loading outlasts each probe's budget; the probes are the default ones."""
        folder = f"{cluster.WORK}/slow"
        os.makedirs(folder)
        rate = os.path.getsize(cluster.SMOLLM2) / 130
        files = cluster.Process("slow-files", sys.executable, f"{cluster.HERE}/slow_files.py", folder, cluster.SMOLLM2, str(rate))
        self.addCleanup(subprocess.run, ["umount", "--lazy", folder])
        self.addCleanup(files.kill)
        self.c.wait("the slow file", lambda: os.path.ismount(folder))
        self.c.claim("slow", folder)
        self.apply(model("slow", {"accelerator": {"vendor": "cpu"}, "source": {"uri": "pvc://slow"}, "drain": {"preStopSeconds": 0},
                                  "model": {"source": {"path": "/models/smollm2.gguf"}, "contextLength": 1024,
                                            "server": {"lameDuckSeconds": 0}}}))
        pod = self.c.wait("a pod that runs", lambda: [p for p in self.c.pods("slow") if p["status"].get("podIP")])[0]
        address = pod["status"]["podIP"], 8000
        self.assertEqual(self.c.wait("its port is open", lambda: get(address, "/livez"))[0], 200)
        started = time.monotonic()
        self.assertIn(get(address, "/readyz"), ((503, "source\n"), (503, "weights\n")))
        self.c.wait("it says so", lambda: json.loads(get(address, "/status")[1])["phase"] == "loading")
        self.c.wait("the model says so", lambda: self.c.condition("slow")["reason"] == "Loading")
        self.c.ready("slow")
        seconds = time.monotonic() - started
        [container] = pod["spec"]["containers"]
        for probe in ("startupProbe", "livenessProbe"):
            self.assertGreater(seconds, seconds_of(container[probe]), probe)
        [pod] = self.c.pods("slow")
        self.assertEqual(pod["status"]["containerStatuses"][0]["restartCount"], 0)
        answer = cluster.post(self.c.address("slow"), "/v1/completions", {"model": "smollm2", "prompt": "a stone", "max_tokens": 4})
        self.assertEqual(answer[0], 200, answer)
        self.figures.append(f"loaded in {seconds:.0f} s")


if __name__ == "__main__":
    unittest.main()
