package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The members of a CompositeController that the driver honours.
type compositeController struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ParentResource struct {
			resourceRule
			IgnoreStatusChanges bool `json:"ignoreStatusChanges"`
		} `json:"parentResource"`
		ChildResources   []childRule     `json:"childResources"`
		GenerateSelector bool            `json:"generateSelector"`
		ResyncSeconds    int             `json:"resyncPeriodSeconds"`
		Hooks            map[string]hook `json:"hooks"` // sync, finalize, customize
	} `json:"spec"`
}

type resourceRule struct {
	APIVersion string `json:"apiVersion"`
	Resource   string `json:"resource"`
}

type childRule struct {
	resourceRule
	UpdateStrategy struct {
		Method string `json:"method"` // OnDelete or InPlace
	} `json:"updateStrategy"`
}

type hook struct {
	Version string `json:"version"`
	Webhook struct {
		URL     string          `json:"url"`
		Timeout metav1.Duration `json:"timeout"`
	} `json:"webhook"`
}

// Objects by kind ("Deployment.apps/v1") and then by name ("namespace/name" for namespaced ones).
type objectMap map[string]map[string]*unstructured.Unstructured

type hookRequest struct {
	Controller *unstructured.Unstructured `json:"controller"`
	Parent     *unstructured.Unstructured `json:"parent"`
}

type syncRequest struct {
	hookRequest
	Children   objectMap `json:"children"`
	Related    objectMap `json:"related"`
	Finalizing bool      `json:"finalizing"`
}

// Decoded strictly: a member that is not here fails the sync.
type syncAnswer struct {
	Status             map[string]any   `json:"status"`
	Children           []map[string]any `json:"children"`
	ResyncAfterSeconds float64          `json:"resyncAfterSeconds"`
	Finalized          bool             `json:"finalized"`
}

type customizeAnswer struct {
	RelatedResources []relatedRule `json:"relatedResources"`
}

type relatedRule struct {
	resourceRule
	LabelSelector *metav1.LabelSelector `json:"labelSelector"`
	Namespace     string                `json:"namespace"`
	Names         []string              `json:"names"`
}

func fromUnstructured(object *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
