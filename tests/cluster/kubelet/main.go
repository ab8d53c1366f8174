// A kubelet for tests: really runs the programs of the pods that are bound to its node, each in
// network, mount, process and host name namespaces of its own, with the volumes that it asks for, and
// honours probes, lifecycle and signals. An image is a program of this machine (--image). It knows
// what the pods of Ashlar's charts use, and says in the pod's status what it does not know.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
)

// One node.
type kubelet struct {
	client     kubernetes.Interface
	events     record.EventRecorder
	node       string
	dir        string            // of logs and volumes
	images     map[string]string // image name -> program
	clusterDNS string

	mutex   sync.Mutex
	workers map[types.UID]*worker
	nextIP  netip.Addr
	freeIPs []netip.Addr
}

// The list NAME=PROGRAM of a flag that may be repeated.
type imageFlag map[string]string

func (f imageFlag) String() string { return fmt.Sprint(map[string]string(f)) }
func (f imageFlag) Set(text string) error {
	at := strings.LastIndex(text, "=")
	if at < 0 {
		return fmt.Errorf("%q is not NAME=PROGRAM", text)
	}
	f[text[:at]] = text[at+1:]
	return nil
}

func (k *kubelet) takeIP() netip.Addr {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	// A fresh one as long as there is one: a late packet for an old pod must not reach a new one.
	if k.nextIP.As4()[3] < 250 {
		k.nextIP = k.nextIP.Next()
		return k.nextIP
	}
	ip := k.freeIPs[0]
	k.freeIPs = k.freeIPs[1:]
	return ip
}

func (k *kubelet) giveIP(ip netip.Addr) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.freeIPs = append(k.freeIPs, ip)
}

func (k *kubelet) onPod(ctx context.Context, pod *corev1.Pod) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if w, ok := k.workers[pod.UID]; ok {
		w.update(pod)
		return
	}
	w := newWorker(ctx, k, pod)
	k.workers[pod.UID] = w
	go func() {
		w.run()
		k.mutex.Lock()
		delete(k.workers, pod.UID)
		k.mutex.Unlock()
	}()
}

func (k *kubelet) watchPods(ctx context.Context) {
	list := cache.NewListWatchFromClient(k.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", k.node))
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: list, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { k.onPod(ctx, object.(*corev1.Pod)) },
			UpdateFunc: func(_, object any) { k.onPod(ctx, object.(*corev1.Pod)) },
			DeleteFunc: func(object any) {
				if pod, ok := object.(*corev1.Pod); ok {
					k.onGone(pod.UID)
				}
			},
		}})
	informer.Run(ctx.Done())
}

// A pod deleted by force ends at once.
func (k *kubelet) onGone(uid types.UID) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if w, ok := k.workers[uid]; ok {
		w.cancel()
	}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "sandbox" {
		log.Fatal(enterSandbox())
	}
	images := imageFlag{}
	kubeconfig := flag.String("kubeconfig", "", "of an administrator")
	node := flag.String("node", "node-a", "name of the node")
	subnet := flag.String("subnet", "10.244.1.0", "first address of the node's pods; the bridge br0 leads to them")
	dir := flag.String("dir", "", "folder for logs and volumes")
	dns := flag.String("cluster-dns", "10.0.0.10", "name server of the pods")
	labels := flag.String("labels", "", "of the node: a=b,c=d")
	flag.Var(images, "image", "NAME=PROGRAM: what runs for an image; may be repeated")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 100, 200
	absolute, err := filepath.Abs(*dir)
	if err != nil {
		log.Fatal(err)
	}
	k := &kubelet{client: kubernetes.NewForConfigOrDie(config), node: *node, dir: absolute, images: images, clusterDNS: *dns,
		workers: map[types.UID]*worker{}, nextIP: netip.MustParseAddr(*subnet)}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: k.client.CoreV1().Events("")})
	k.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: *node})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := k.register(ctx, *labels); err != nil {
		log.Fatal(err)
	}
	go k.renewLease(ctx)
	k.watchPods(ctx)
}
