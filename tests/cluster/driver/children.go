package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const fieldManager = "metacontroller"
const uidLabel = "controller-uid"

// What was applied last, and what the object was then: the same wish for the same object needs no
// write.
type applied struct {
	wish    [32]byte
	version string
}

// Writes of status do not change what was applied.
func versionOf(object *unstructured.Unstructured) string {
	if object.GetGeneration() > 0 {
		return fmt.Sprintf("%s/%d", object.GetUID(), object.GetGeneration())
	}
	return fmt.Sprintf("%s/%s", object.GetUID(), object.GetResourceVersion())
}

// complete adds to a wanted child what makes it the parent's.
func (c *controller) complete(parent *unstructured.Unstructured, wanted map[string]any) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(wanted)}
	if child.GetNamespace() == "" {
		child.SetNamespace(parent.GetNamespace())
	}
	if c.spec.Spec.GenerateSelector {
		labels := child.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[uidLabel] = string(parent.GetUID())
		child.SetLabels(labels)
	}
	yes := true
	child.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(),
		Name: parent.GetName(), UID: parent.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes}})
	return child
}

// manageChildren makes, changes and deletes until the owned objects are those that the hook listed.
func (c *controller) manageChildren(ctx context.Context, parent *unstructured.Unstructured, wanted []map[string]any) error {
	var firstErr error
	keep := func(err error) {
		if err != nil && firstErr == nil {
			firstErr = err
		}
	}
	listed := map[string]bool{}
	for _, object := range wanted {
		child := c.complete(parent, object)
		kind, rule := c.childKind(child)
		if kind == nil {
			return fmt.Errorf("%s %s is no declared child", child.GetAPIVersion(), child.GetKind())
		}
		listed[kind.key()+" "+child.GetNamespace()+"/"+child.GetName()] = true
		keep(c.applyChild(ctx, parent, kind, rule, child))
	}
	for i := range c.children {
		kind := c.children[i]
		for _, child := range kind.ownedBy(string(parent.GetUID())) {
			if listed[kind.key()+" "+child.GetNamespace()+"/"+child.GetName()] || child.GetDeletionTimestamp() != nil {
				continue
			}
			keep(c.deleteChild(ctx, kind, child))
		}
	}
	return firstErr
}

func (c *controller) childKind(child *unstructured.Unstructured) (*watched, childRule) {
	for i, kind := range c.children {
		if kind.kind == child.GetKind() && kind.gvr.GroupVersion().String() == child.GetAPIVersion() {
			return kind, c.spec.Spec.ChildResources[i]
		}
	}
	return nil, childRule{}
}

func (c *controller) deleteChild(ctx context.Context, kind *watched, child *unstructured.Unstructured) error {
	uid, background := child.GetUID(), metav1.DeletePropagationBackground
	err := kind.client(c.dynamic, child.GetNamespace()).Delete(ctx, child.GetName(),
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (c *controller) applyChild(ctx context.Context, parent *unstructured.Unstructured, kind *watched, rule childRule, child *unstructured.Unstructured) error {
	text, err := json.Marshal(child)
	if err != nil {
		return err
	}
	var observed *unstructured.Unstructured
	for _, owned := range kind.ownedBy(string(parent.GetUID())) {
		if owned.GetName() == child.GetName() && owned.GetNamespace() == child.GetNamespace() {
			observed = owned
		}
	}
	client := kind.client(c.dynamic, child.GetNamespace())
	wish := sha256.Sum256(text)
	memoKey := kind.key() + " " + child.GetNamespace() + "/" + child.GetName()
	if observed != nil {
		if observed.GetDeletionTimestamp() != nil {
			return nil
		}
		c.memoMutex.Lock()
		memo := c.memo[memoKey]
		c.memoMutex.Unlock()
		if memo == (applied{wish, versionOf(observed)}) {
			return nil
		}
		if rule.UpdateStrategy.Method != "InPlace" {
			return nil
		}
	}
	force := true
	after, err := client.Patch(ctx, child.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	if err != nil {
		return fmt.Errorf("%s %s: %w", child.GetKind(), child.GetName(), err)
	}
	c.memoMutex.Lock()
	c.memo[memoKey] = applied{wish, versionOf(after)}
	c.memoMutex.Unlock()
	return nil
}
