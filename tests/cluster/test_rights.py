"""HE-13: every right of the chart's roles is used, and what is used is granted, by what was asked in the whole run."""
import unittest

import cluster
from case import ClusterTest, alone

ACCOUNT = "ashlar-metacontroller"


class Rights(ClusterTest):
    def granted(self):
        rights = set()
        for role in self.c.get("ClusterRole", ACCOUNT, ""), self.c.get("Role", ACCOUNT, cluster.OPERATOR):
            for rule in role["rules"]:
                rights |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                           for verb in rule["verbs"]}
        return rights

    @alone
    def test_every_right_is_used_and_none_is_missing(self):
        used = set()
        for entry in self.c.asked(ACCOUNT):
            if "objectRef" not in entry:
                continue  # discovery, which everybody may
            self.assertNotEqual(entry["responseStatus"]["code"], 403, entry)
            of = entry["objectRef"]
            right = of.get("apiGroup", ""), of["resource"] + ("/" + of["subresource"] if "subresource" in of else "")
            used.add((*right, entry["verb"]))
            if entry["verb"] == "patch" and entry["responseStatus"]["code"] == 201:
                used.add((*right, "create"))
        self.figures.append(f"{len(used)} rights used of {len(self.granted())}")
        self.assertEqual(self.granted() - used, set())
        self.assertEqual(used - self.granted(), set())


if __name__ == "__main__":
    unittest.main()
