package main

import (
	"encoding/json"
	"fmt"
	"log"
	"strings"
)

type object = map[string]any

// managedFields as the API server keeps them: about as many bytes again as the object.
func managed(value any) object {
	text, _ := json.Marshal(value)
	return object{"manager": "metacontroller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
		"time": "2026-01-01T00:00:00Z", "fieldsV1": object{"f:spec": object{"f:text": string(text)}}}
}

type answer struct {
	Status   object
	Children []object
}

func answerOf(hooks *server, children []object) answer {
	var a answer
	if err := json.Unmarshal(hooks.sync(syncBody("demo", children, nil)), &a); err != nil {
		log.Fatal(err)
	}
	return a
}

// observedChildren is what a cluster holds after it has carried out the hook's first answer: that many
// of its children, the Deployment first; beyond them older documents.
func observedChildren(hooks *server, count int) []object {
	answer := answerOf(hooks, nil)
	var first, rest []object
	var document object
	for _, child := range answer.Children {
		switch child["kind"] {
		case "Deployment":
			child["status"] = object{"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
			first = append(first, child)
		case "ConfigMap":
			document = child
			first = append(first, child)
		default:
			rest = append(rest, child)
		}
	}
	children := append(first, rest...)
	for i := 0; len(children) < count; i++ {
		text, _ := json.Marshal(document)
		var older object
		_ = json.Unmarshal(text, &older)
		older["metadata"].(object)["name"] = fmt.Sprintf("demo-%010x", i)
		older["metadata"].(object)["annotations"] = object{"ashlar.dev/model-digest": strings.Repeat(fmt.Sprintf("%08x", i), 8)}
		children = append(children, older)
	}
	children = children[:count]
	for _, child := range children {
		metadata := child["metadata"].(object)
		metadata["uid"], metadata["resourceVersion"], metadata["generation"] = "51581c6e-05c2-42b4-9a4d-2fdf90d0c6a5", "253", 1
		metadata["managedFields"] = []object{managed(child)}
	}
	return children
}

// syncBody is a request as Metacontroller sends it: a model with its status, its children and two nodes.
func syncBody(name string, children []object, status object) []byte {
	grouped := object{"ConfigMap.v1": object{}, "Service.v1": object{}, "Deployment.apps/v1": object{}, "NetworkPolicy.networking.k8s.io/v1": object{},
		"PodDisruptionBudget.policy/v1": object{}}
	for _, child := range children {
		version := child["apiVersion"].(string)
		key := fmt.Sprintf("%s.%s", child["kind"], version)
		if grouped[key] == nil {
			grouped[key] = object{}
		}
		childName := strings.Replace(child["metadata"].(object)["name"].(string), "demo", name, 1)
		grouped[key].(object)["default/"+childName] = child
	}
	var nodeConditions []object
	for _, kind := range []string{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"} {
		nodeConditions = append(nodeConditions, object{"type": kind, "status": "False", "reason": "KubeletHasNo" + kind,
			"message": "kubelet has no such pressure", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
	}
	nodes := object{}
	for i := range 2 {
		node := fmt.Sprintf("node-%d", i)
		nodes[node] = object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": node, "uid": node,
			"labels":        object{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": node},
			"managedFields": []object{managed(nodeConditions)}},
			"status": object{"allocatable": object{"cpu": "64", "memory": "256Gi", "pods": "110"}, "conditions": nodeConditions}}
	}
	spec := object{"replicas": 1, "accelerator": object{"vendor": "cpu"}, "model": object{"source": object{"builtin": "demo"}}}
	body, err := json.Marshal(object{"controller": object{"kind": "CompositeController", "apiVersion": "metacontroller.k8s.io/v1alpha1",
		"metadata": object{"name": "ashlar-inferencemodels"}},
		"parent": object{"apiVersion": "ashlar.dev/v1alpha1", "kind": "InferenceModel",
			"metadata": object{"name": name, "namespace": "default", "uid": "uid-" + name, "generation": 1,
				"finalizers":    []string{"metacontroller.io/compositecontroller-ashlar-inferencemodels"},
				"managedFields": []object{managed(spec), managed(status)}},
			"spec": spec, "status": status},
		"children": grouped, "related": object{"Node.v1": nodes}, "finalizing": false})
	if err != nil {
		log.Fatal(err)
	}
	return body
}
