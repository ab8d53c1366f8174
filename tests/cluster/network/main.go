// What a cluster's network does for Services, for tests: every port of a Service with an address is
// listened on and passed to its endpoints, and a name server answers for Services. Both know what
// EndpointSlices say. The machine routes the Services' network to itself:
// ip route add local 10.0.0.0/16 dev lo
package main

import (
	"context"
	"flag"
	"log"
	"os/signal"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

type serviceKey struct{ namespace, name string }

// The Services and their endpoints as they are now.
type directory struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// addresses returns the endpoints that take connections: the ready ones, or while there are none those
// that still serve while they end.
func (d *directory) addresses(key serviceKey) (addresses []string, ports map[string]int32) {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: key.name})
	found, _ := d.slices.EndpointSlices(key.namespace).List(selector)
	ports = map[string]int32{}
	var ending []string
	for _, slice := range found {
		for _, port := range slice.Ports {
			if port.Name != nil && port.Port != nil {
				ports[*port.Name] = *port.Port
			}
		}
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case c.Ready == nil || *c.Ready:
				addresses = append(addresses, endpoint.Addresses...)
			case c.Serving != nil && *c.Serving && c.Terminating != nil && *c.Terminating:
				ending = append(ending, endpoint.Addresses...)
			}
		}
	}
	if len(addresses) == 0 {
		addresses = ending
	}
	return addresses, ports
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "of an administrator")
	apiserver := flag.String("apiserver", "", "address:port behind 10.0.0.1:443, which pods ask")
	dnsAddress := flag.String("dns", "10.0.0.10:53", "address of the name server")
	domain := flag.String("domain", "cluster.local", "suffix of names")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	services, slices := factory.Core().V1().Services(), factory.Discovery().V1().EndpointSlices()
	d := &directory{services.Lister(), slices.Lister()}
	f := &forwarder{directory: d, listeners: map[string]*listener{}}
	changed := make(chan struct{}, 1)
	notify := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { tell(changed) },
		UpdateFunc: func(any, any) { tell(changed) },
		DeleteFunc: func(any) { tell(changed) },
	}
	services.Informer().AddEventHandler(notify)
	slices.Informer().AddEventHandler(notify)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if *apiserver != "" {
		f.fixed("10.0.0.1:443", *apiserver)
	}
	go func() { log.Fatal(serveDNS(d, *dnsAddress, *domain)) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			f.update()
		}
	}
}

func tell(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

func hasAddress(service *corev1.Service) bool {
	return service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone
}
