package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

const dialTimeout = 2 * time.Second

// One port of a Service. Connections made stay with their endpoint; new ones go round.
type listener struct {
	net.Listener
	targets atomic.Pointer[[]string]
	next    atomic.Uint64
}

type forwarder struct {
	directory *directory
	listeners map[string]*listener // by address:port
}

// update listens where there are endpoints and nowhere else: a Service without one refuses.
func (f *forwarder) update() {
	services, _ := f.directory.services.List(labels.Everything())
	wanted := map[string][]string{}
	for _, service := range services {
		if !hasAddress(service) {
			continue
		}
		addresses, ports := f.directory.addresses(serviceKey{service.Namespace, service.Name})
		for _, port := range service.Spec.Ports {
			at := fmt.Sprintf("%s:%d", service.Spec.ClusterIP, port.Port)
			for _, address := range addresses {
				wanted[at] = append(wanted[at], fmt.Sprintf("%s:%d", address, ports[port.Name]))
			}
		}
	}
	for at, l := range f.listeners {
		if len(wanted[at]) == 0 && l.targets.Load() != nil && at != kubernetesService {
			l.Close()
			delete(f.listeners, at)
		}
	}
	for at, targets := range wanted {
		f.listen(at, targets)
	}
}

const kubernetesService = "10.0.0.1:443"

// fixed is for a Service without endpoints of its own.
func (f *forwarder) fixed(at, target string) { f.listen(at, []string{target}) }

func (f *forwarder) listen(at string, targets []string) {
	if l, ok := f.listeners[at]; ok {
		l.targets.Store(&targets)
		return
	}
	opened, err := net.Listen("tcp", at)
	if err != nil {
		log.Printf("%s: %v", at, err)
		return
	}
	l := &listener{Listener: opened}
	l.targets.Store(&targets)
	f.listeners[at] = l
	go l.serve()
}

func (l *listener) serve() {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		targets := *l.targets.Load()
		target := targets[l.next.Add(1)%uint64(len(targets))]
		go pass(client.(*net.TCPConn), target)
	}
}

// pass carries both directions until both have ended. What cannot be reached is refused with a reset,
// as a network would.
func pass(client *net.TCPConn, target string) {
	defer client.Close()
	dialed, err := net.DialTimeout("tcp", target, dialTimeout)
	if err != nil {
		log.Printf("%s: %v", target, err)
		_ = client.SetLinger(0)
		return
	}
	server := dialed.(*net.TCPConn)
	defer server.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.CloseWrite()
		close(done)
	}()
	_, _ = io.Copy(client, server)
	_ = client.CloseWrite()
	<-done
}
