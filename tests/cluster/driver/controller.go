package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

const workers = 5

// An informer without a period of its own serves no handler that has one.
const anyResync = 24 * time.Hour

// Drives one CompositeController: watches its parents and their children and calls its hooks.
type controller struct {
	object  *unstructured.Unstructured // the CompositeController
	spec    compositeController
	dynamic dynamic.Interface
	events  record.EventRecorder

	parents   *watched
	children  []*watched // one for each of spec.childResources
	resources *resources
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]

	memoMutex sync.Mutex
	memo      map[string]applied
}

func newController(object *unstructured.Unstructured, client dynamic.Interface, events record.EventRecorder) (*controller, error) {
	c := &controller{object: object, dynamic: client, events: events, memo: map[string]applied{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())}
	return c, fromUnstructured(object, &c.spec)
}

// run works until the context ends. A declared kind that is not served is an error.
func (c *controller) run(ctx context.Context, server discovery.DiscoveryInterface) error {
	c.resources = &resources{ctx: ctx, discovery: server, known: map[resourceRule]*watched{},
		factory: dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, anyResync)}
	var err error
	c.parents, err = c.resources.get(c.spec.Spec.ParentResource.resourceRule, c.spec.Spec.ResyncSeconds, c.onParent)
	if err != nil {
		return err
	}
	if err := c.checkRights(ctx); err != nil {
		return err
	}
	for _, rule := range c.spec.Spec.ChildResources {
		kind, err := c.resources.get(rule.resourceRule, 0, func(_, child *unstructured.Unstructured) { c.enqueueOwner(child) })
		if err != nil {
			return err
		}
		c.children = append(c.children, kind)
	}
	for range workers {
		go func() {
			for c.work(ctx) {
			}
		}()
	}
	<-ctx.Done()
	c.queue.ShutDown()
	return nil
}

// checkRights does what Metacontroller does beside what the hooks ask for, so that the chart's role is
// tested for it: it watches the definitions of all kinds and all namespaces.
func (c *controller) checkRights(ctx context.Context) error {
	for _, resource := range []schema.GroupVersionResource{
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, {Version: "v1", Resource: "namespaces"}} {
		if _, err := c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
		watch, err := c.dynamic.Resource(resource).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		watch.Stop()
	}
	return nil
}

func (c *controller) onParent(old, parent *unstructured.Unstructured) {
	if old != nil && old != parent && c.spec.Spec.ParentResource.IgnoreStatusChanges {
		a, b := old.DeepCopy(), parent.DeepCopy()
		for _, object := range []*unstructured.Unstructured{a, b} {
			delete(object.Object, "status")
			object.SetResourceVersion("")
			object.SetManagedFields(nil)
		}
		if reflect.DeepEqual(a, b) {
			return
		}
	}
	c.queue.Add(cache.ObjectName{Namespace: parent.GetNamespace(), Name: parent.GetName()})
}

func (c *controller) enqueueOwner(child *unstructured.Unstructured) {
	owner := metav1.GetControllerOf(child)
	if owner != nil && owner.Kind == c.parents.kind {
		c.queue.Add(cache.ObjectName{Namespace: child.GetNamespace(), Name: owner.Name})
	}
}

func (c *controller) enqueueAll() {
	for _, parent := range asUnstructured(c.parents.informer.GetIndexer().List()) {
		c.queue.Add(cache.ObjectName{Namespace: parent.GetNamespace(), Name: parent.GetName()})
	}
}

func (c *controller) work(ctx context.Context) bool {
	name, stop := c.queue.Get()
	if stop {
		return false
	}
	defer c.queue.Done(name)
	again, err := c.sync(ctx, name)
	var early tooEarly
	switch {
	case errors.As(err, &early):
		c.queue.AddAfter(name, early.wait)
	case err != nil:
		log.Printf("%s: %v", name, err)
		c.queue.AddRateLimited(name)
	default:
		c.queue.Forget(name)
		if again > 0 {
			c.queue.AddAfter(name, again)
		}
	}
	return true
}

func (c *controller) finalizer() string {
	if _, ok := c.spec.Spec.Hooks["finalize"]; !ok {
		return ""
	}
	return "metacontroller.io/compositecontroller-" + c.object.GetName()
}

func (c *controller) sync(ctx context.Context, name cache.ObjectName) (time.Duration, error) {
	found, exists, err := c.parents.informer.GetIndexer().GetByKey(name.String())
	if err != nil || !exists {
		return 0, err
	}
	parent := found.(*unstructured.Unstructured).DeepCopy()
	deleting := parent.GetDeletionTimestamp() != nil
	finalizer := c.finalizer()
	if deleting && !contains(parent.GetFinalizers(), finalizer) {
		return 0, nil
	}
	if !deleting && finalizer != "" && !contains(parent.GetFinalizers(), finalizer) {
		parent, err = c.editFinalizers(ctx, parent, func(list []string) []string { return append(list, finalizer) })
		if err != nil {
			return 0, err
		}
	}
	answer, err := c.ask(ctx, parent, deleting)
	var early tooEarly
	if err != nil {
		if !errors.As(err, &early) {
			c.events.Event(parent, corev1.EventTypeWarning, "SyncError", err.Error())
		}
		return 0, err
	}
	childErr := c.manageChildren(ctx, parent, answer.Children)
	if err := c.writeStatus(ctx, parent, answer.Status); err != nil {
		return 0, err
	}
	if childErr != nil {
		c.events.Event(parent, corev1.EventTypeWarning, "SyncError", childErr.Error())
		return 0, childErr
	}
	if deleting && answer.Finalized {
		_, err := c.editFinalizers(ctx, parent, func(list []string) []string {
			var kept []string
			for _, item := range list {
				if item != finalizer {
					kept = append(kept, item)
				}
			}
			return kept
		})
		return 0, err
	}
	return time.Duration(answer.ResyncAfterSeconds * float64(time.Second)), nil
}

// ask collects what the hook is to see and calls it.
func (c *controller) ask(ctx context.Context, parent *unstructured.Unstructured, deleting bool) (*syncAnswer, error) {
	request := syncRequest{hookRequest: hookRequest{Controller: c.object, Parent: parent}, Finalizing: deleting,
		Children: objectMap{}, Related: objectMap{}}
	for _, kind := range c.children {
		request.Children[kind.key()] = byName(kind, kind.ownedBy(string(parent.GetUID())))
	}
	if customize, ok := c.spec.Spec.Hooks["customize"]; ok {
		var wanted customizeAnswer
		if err := call(ctx, customize, request.hookRequest, &wanted); err != nil {
			return nil, err
		}
		for _, rule := range wanted.RelatedResources {
			kind, err := c.resources.get(rule.resourceRule, 0, func(_, _ *unstructured.Unstructured) { c.enqueueAll() })
			if err != nil {
				return nil, err
			}
			objects, err := kind.matching(rule)
			if err != nil {
				return nil, err
			}
			request.Related[kind.key()] = byName(kind, objects)
		}
	}
	which := "sync"
	if deleting {
		which = "finalize"
	}
	answer := &syncAnswer{}
	return answer, call(ctx, c.spec.Spec.Hooks[which], request, answer)
}

func byName(kind *watched, objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		name := object.GetName()
		if kind.namespaced {
			name = fmt.Sprintf("%s/%s", object.GetNamespace(), name)
		}
		out[name] = object
	}
	return out
}

func (c *controller) editFinalizers(ctx context.Context, parent *unstructured.Unstructured, edit func([]string) []string) (*unstructured.Unstructured, error) {
	client := c.parents.client(c.dynamic, parent.GetNamespace())
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := client.Get(ctx, parent.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.SetFinalizers(edit(now.GetFinalizers()))
		parent, err = client.Update(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return parent, err
}

// writeStatus replaces the whole status, as Metacontroller does.
func (c *controller) writeStatus(ctx context.Context, parent *unstructured.Unstructured, status map[string]any) error {
	client := c.parents.client(c.dynamic, parent.GetNamespace())
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = parent.GetGeneration()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := client.Get(ctx, parent.GetName(), metav1.GetOptions{})
		if err != nil || now.GetUID() != parent.GetUID() {
			return err
		}
		if same(now.Object["status"], status) {
			return nil
		}
		now.Object["status"] = status
		_, err = client.UpdateStatus(ctx, now, metav1.UpdateOptions{FieldManager: fieldManager})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
