"""What is left when the chart is uninstalled, and taken up again when it is back."""
import unittest

import cluster
from case import ClusterTest, alone
from cluster import quick_demo


class Uninstall(ClusterTest):
    @alone
    def test_uninstall_keeps_models_and_data(self):
        self.apply(quick_demo("stays"))
        self.c.ready("stays")
        before = {p["metadata"]["uid"] for p in self.c.pods("stays")}
        self.c.helm("uninstall", "ashlar", "-n", cluster.OPERATOR, "--wait")
        self.c.wait("the operator is gone", lambda: not self.c.list("Deployment", cluster.OPERATOR))
        self.assertTrue(self.c.get("InferenceModel", "stays"))
        self.assertEqual({p["metadata"]["uid"] for p in self.c.pods("stays")}, before)
        self.answers("stays")
        self.c.install()
        self.c.ready("stays")
        self.assertEqual({p["metadata"]["uid"] for p in self.c.pods("stays")}, before)


if __name__ == "__main__":
    unittest.main()
