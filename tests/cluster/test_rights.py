"""HE-13: every right of the chart's roles is used, and what is used is granted, by what was asked in the whole run."""
import unittest

import cluster
from case import ClusterTest, alone

ACCOUNT = "ashlar-metacontroller"
CHILDREN = {"configmaps", "services", "persistentvolumeclaims", "deployments", "jobs", "poddisruptionbudgets", "networkpolicies",
            "horizontalpodautoscalers", "podmonitors", "scaledobjects", "leaderworkersets", "resourceclaimtemplates"}


def needed_unseen(group, resource, verb):
    """Why a right that no run shows is needed."""
    if verb == "list":
        return "what a watch falls back to where the API server does not stream lists"
    if resource in CHILDREN and verb in ("get", "update", "delete"):
        return "Metacontroller lets go of a child that lost its labels, takes up one without an owner, deletes one that is not wanted"
    if resource == "events":
        return "what fails is told as an event, and told again by changing it"
    if resource == "inferencemodels/finalizers":
        return "asked by OwnerReferencesPermissionEnforcement, where that is on, for blockOwnerDeletion"
    if group == "metacontroller.k8s.io" and resource != "compositecontrollers":
        return "Metacontroller watches its other kinds too; the driver of these tests does not"
    return None


class Rights(ClusterTest):
    def granted(self):
        rights = set()
        for role in self.c.get("ClusterRole", ACCOUNT), self.c.get("Role", ACCOUNT, cluster.OPERATOR):
            for rule in role["rules"]:
                rights |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                           for verb in rule["verbs"]}
        return rights

    @alone
    def test_every_right_is_used_and_none_is_missing(self):
        asked, used, granted = set(), set(), self.granted()
        for entry in self.c.asked(ACCOUNT):
            if "objectRef" not in entry:
                continue  # discovery, which everybody may
            of, code = entry["objectRef"], entry["responseStatus"]["code"]
            right = of.get("apiGroup", ""), of["resource"] + ("/" + of["subresource"] if "subresource" in of else "")
            asked.add((*right, entry["verb"]))
            if code != 403:  # which an API server also says that has just started and knows no roles yet
                used.add((*right, entry["verb"]))
            if entry["verb"] == "patch" and code == 201:
                used.add((*right, "create"))
        self.figures.append(f"{len(granted & used)} of {len(granted)} rights seen in use")
        self.assertEqual({right for right in granted - used if not needed_unseen(*right)}, set())
        self.assertEqual(asked - granted, set())


if __name__ == "__main__":
    unittest.main()
