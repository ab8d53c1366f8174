// Does to the hooks what Metacontroller does, for tests: watches the CompositeControllers of the
// cluster, calls their hooks (version v2) and carries out the answers. It is a stand-in, not
// Metacontroller: the methods OnDelete and InPlace, server-side apply, one worker pool, no
// revision history. A test holds its requests to those that the real one sent.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// Why a controller that cannot start is tried again: the kinds that it names may come.
const restartWait = 3 * time.Second

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// The controllers that run, one for each CompositeController.
type drivers struct {
	ctx    context.Context
	client dynamic.Interface
	typed  kubernetes.Interface
	events record.EventRecorder
	mutex  sync.Mutex
	stop   map[string]context.CancelFunc
}

func (d *drivers) restart(object *unstructured.Unstructured) {
	d.end(object)
	ctx, cancel := context.WithCancel(d.ctx)
	d.mutex.Lock()
	d.stop[object.GetName()] = cancel
	d.mutex.Unlock()
	go func() {
		for ctx.Err() == nil {
			c, err := newController(object, d.client, d.events)
			if err == nil {
				attempt, end := context.WithCancel(ctx)
				err = c.run(attempt, d.typed.Discovery())
				end()
			}
			if err != nil {
				log.Printf("%s does not start: %v", object.GetName(), err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(restartWait):
			}
		}
	}()
}

func (d *drivers) end(object *unstructured.Unstructured) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if cancel, ok := d.stop[object.GetName()]; ok {
		cancel()
		delete(d.stop, object.GetName())
	}
}

func (d *drivers) watch(selector string) {
	gvr := schema.GroupVersionResource{Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "compositecontrollers"}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(d.client, 0, metav1.NamespaceAll,
		func(options *metav1.ListOptions) { options.LabelSelector = selector })
	informer := factory.ForResource(gvr).Informer()
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { d.restart(object.(*unstructured.Unstructured)) },
		UpdateFunc: func(old, new any) {
			if old.(*unstructured.Unstructured).GetGeneration() != new.(*unstructured.Unstructured).GetGeneration() {
				d.restart(new.(*unstructured.Unstructured))
			}
		},
		DeleteFunc: func(object any) {
			if gone, ok := object.(*unstructured.Unstructured); ok {
				d.end(gone)
			}
		},
	})
	informer.Run(d.ctx.Done())
}

func namespace() string {
	text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return "default"
	}
	return string(text)
}

// lead works while this process holds the lease, and ends the process when it is lost.
func lead(ctx context.Context, client kubernetes.Interface, work func(context.Context)) {
	host, _ := os.Hostname()
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace(), Name: "metacontroller"},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: host}}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{Lock: lock, ReleaseOnCancel: true,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: work,
			OnStoppedLeading: func() { log.Print("the lease is another's") }}})
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file; without one, as the pod's service account")
	selector := flag.String("target-label-selector", "", "of the CompositeControllers to drive")
	elect := flag.Bool("leader-election", false, "work only while holding a lease")
	qps := flag.Float64("client-go-qps", 5, "requests a second")
	burst := flag.Int("client-go-burst", 10, "requests at once")
	strategy := flag.String("apply-strategy", "server-side-apply", "the only one there is here")
	health := flag.String("health", ":8081", "address of /healthz and /readyz")
	flag.Parse()
	if *strategy != "server-side-apply" {
		log.Fatalf("--apply-strategy %s is not known here", *strategy)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = float32(*qps), *burst
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	d := &drivers{client: dynamic.NewForConfigOrDie(config), typed: kubernetes.NewForConfigOrDie(rest.CopyConfig(config)),
		stop: map[string]context.CancelFunc{}}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: d.typed.CoreV1().Events("")})
	d.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "metacontroller"})

	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	http.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	go func() { log.Fatal(http.ListenAndServe(*health, nil)) }()

	work := func(ctx context.Context) {
		d.ctx = ctx
		d.watch(*selector)
	}
	if *elect {
		lead(ctx, d.typed, work)
	} else {
		work(ctx)
	}
}
