package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const ownerIndex = "owner"

// One kind that the API server serves, watched.
type watched struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	informer   cache.SharedIndexInformer
}

// The kind as it is named in a request.
func (w *watched) key() string {
	return w.kind + "." + w.gvr.GroupVersion().String()
}

func (w *watched) client(client dynamic.Interface, ns string) dynamic.ResourceInterface {
	if w.namespaced {
		return client.Resource(w.gvr).Namespace(ns)
	}
	return client.Resource(w.gvr)
}

func (w *watched) ownedBy(uid string) []*unstructured.Unstructured {
	found, _ := w.informer.GetIndexer().ByIndex(ownerIndex, uid)
	return asUnstructured(found)
}

func (w *watched) matching(rule relatedRule) ([]*unstructured.Unstructured, error) {
	selector, err := metav1.LabelSelectorAsSelector(rule.LabelSelector)
	if err != nil {
		return nil, err
	}
	var found []*unstructured.Unstructured
	for _, object := range asUnstructured(w.informer.GetIndexer().List()) {
		if (rule.LabelSelector == nil || selector.Matches(labels.Set(object.GetLabels()))) &&
			(len(rule.Names) == 0 || contains(rule.Names, object.GetName())) &&
			(rule.Namespace == "" || rule.Namespace == object.GetNamespace()) {
			found = append(found, object)
		}
	}
	return found, nil
}

func asUnstructured(objects []any) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		out = append(out, object.(*unstructured.Unstructured))
	}
	return out
}

func contains(list []string, word string) bool {
	for _, item := range list {
		if item == word {
			return true
		}
	}
	return false
}

// The watches of one controller, each started when it is first asked for.
type resources struct {
	ctx       context.Context
	discovery discovery.DiscoveryInterface
	factory   dynamicinformer.DynamicSharedInformerFactory
	mutex     sync.Mutex
	known     map[resourceRule]*watched
}

// get watches a resource and waits until its objects are known. `onEvent` is told of every object
// that changes and, unless resync is 0, of all of them every so many seconds; it counts only the first time.
func (r *resources) get(rule resourceRule, resync int, onEvent func(old, new *unstructured.Unstructured)) (*watched, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if found, ok := r.known[rule]; ok {
		return found, nil
	}
	gv, err := schema.ParseGroupVersion(rule.APIVersion)
	if err != nil {
		return nil, err
	}
	list, err := r.discovery.ServerResourcesForGroupVersion(rule.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rule.APIVersion, err)
	}
	for _, resource := range list.APIResources {
		if resource.Name != rule.Resource {
			continue
		}
		w := &watched{gvr: gv.WithResource(rule.Resource), kind: resource.Kind, namespaced: resource.Namespaced}
		w.informer = r.factory.ForResource(w.gvr).Informer()
		err := w.informer.AddIndexers(cache.Indexers{ownerIndex: func(object any) ([]string, error) {
			if owner := metav1.GetControllerOf(object.(*unstructured.Unstructured)); owner != nil {
				return []string{string(owner.UID)}, nil
			}
			return nil, nil
		}})
		if err != nil {
			return nil, err
		}
		w.informer.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { onEvent(nil, object.(*unstructured.Unstructured)) },
			UpdateFunc: func(old, new any) {
				onEvent(old.(*unstructured.Unstructured), new.(*unstructured.Unstructured))
			},
			DeleteFunc: func(object any) {
				if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = gone.Obj
				}
				onEvent(nil, object.(*unstructured.Unstructured))
			},
		}, time.Duration(resync)*time.Second)
		go w.informer.Run(r.ctx.Done())
		if !cache.WaitForCacheSync(r.ctx.Done(), w.informer.HasSynced) {
			return nil, r.ctx.Err()
		}
		r.known[rule] = w
		return w, nil
	}
	return nil, fmt.Errorf("%s %s is not served", rule.APIVersion, rule.Resource)
}
