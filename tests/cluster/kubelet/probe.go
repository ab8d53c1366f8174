package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// One probe of a container, with the thresholds of the kubelet's own.
type probe struct {
	spec  *corev1.Probe
	url   string
	state bool // what it last decided
	run   int32
}

func newProbe(spec *corev1.Probe, container corev1.Container, address string, initial bool) (*probe, error) {
	if spec == nil {
		return nil, nil
	}
	if spec.HTTPGet == nil {
		return nil, fmt.Errorf("a probe other than httpGet is not known here")
	}
	port := spec.HTTPGet.Port.IntVal
	if spec.HTTPGet.Port.Type == intstr.String {
		for _, named := range container.Ports {
			if named.Name == spec.HTTPGet.Port.StrVal {
				port = named.ContainerPort
			}
		}
	}
	return &probe{spec: spec, state: initial, url: fmt.Sprintf("http://%s:%d%s", address, port, spec.HTTPGet.Path)}, nil
}

var probeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (p *probe) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(p.spec.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode >= 400 {
		return fmt.Errorf("HTTP probe failed with statuscode: %d", response.StatusCode)
	}
	return nil
}

// decide counts one answer in. True when the state has changed.
func (p *probe) decide(ok bool) bool {
	if ok == p.state {
		p.run = 0
		return false
	}
	p.run++
	threshold := max(p.spec.FailureThreshold, 1)
	if ok {
		threshold = max(p.spec.SuccessThreshold, 1)
	}
	if p.run < threshold {
		return false
	}
	p.state, p.run = ok, 0
	return true
}

func (p *probe) period() time.Duration {
	return time.Duration(max(p.spec.PeriodSeconds, 1)) * time.Second
}

// probes runs the container's probes until `done`. `ready` is told of each change; `dead` once, of why
// the container must be restarted.
func (w *worker) probes(ctx context.Context, container corev1.Container, done <-chan struct{}, ready func(bool), dead func(string)) error {
	startup, err := newProbe(container.StartupProbe, container, w.ip.String(), false)
	if err != nil {
		return err
	}
	readiness, err := newProbe(container.ReadinessProbe, container, w.ip.String(), false)
	if err != nil {
		return err
	}
	liveness, err := newProbe(container.LivenessProbe, container, w.ip.String(), true)
	if err != nil {
		return err
	}
	go func() {
		if startup != nil && !w.waitStarted(ctx, startup, done, dead) {
			return
		}
		if readiness == nil {
			ready(true)
		} else {
			go w.loop(ctx, readiness, done, func(ok bool, _ error) { ready(ok) })
		}
		if liveness != nil {
			go w.loop(ctx, liveness, done, func(ok bool, why error) {
				if !ok {
					dead(fmt.Sprintf("Liveness probe failed: %v", why))
				}
			})
		}
	}()
	return nil
}

// waitStarted returns false when the container ended or never started.
func (w *worker) waitStarted(ctx context.Context, startup *probe, done <-chan struct{}, dead func(string)) bool {
	for failures := int32(0); ; {
		err := startup.ask(ctx)
		if err == nil {
			return true
		}
		failures++
		if failures >= startup.spec.FailureThreshold {
			dead(fmt.Sprintf("Startup probe failed: %v", err))
			return false
		}
		select {
		case <-done:
			return false
		case <-time.After(startup.period()):
		}
	}
}

func (w *worker) loop(ctx context.Context, p *probe, done <-chan struct{}, changed func(bool, error)) {
	ticker := time.NewTicker(p.period())
	defer ticker.Stop()
	for {
		err := p.ask(ctx)
		if err != nil {
			w.kubelet.events.Eventf(w.pod(), corev1.EventTypeWarning, "Unhealthy", "%s: %v", p.url, err)
		}
		if p.decide(err == nil) {
			changed(p.state, err)
		}
		select {
		case <-done:
			return
		case <-ticker.C:
		}
	}
}
