package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errImage = errors.New("image is not known to this node")

const firstBackoff = 2 * time.Second
const maxBackoff = 30 * time.Second

// One pod from its binding to its end. `run` is one goroutine; the probes tell it what they see.
type worker struct {
	kubelet         *kubelet
	uid             types.UID
	namespace, name string
	dir             string
	ip              netip.Addr
	restarts        int
	ctx             context.Context
	cancel          context.CancelFunc // for a pod deleted by force

	mutex    sync.Mutex
	latest   *corev1.Pod
	deleting chan struct{} // closed once the pod is to end
	seen     status
	changed  chan struct{} // `seen` waits to be written
}

func newWorker(ctx context.Context, k *kubelet, pod *corev1.Pod) *worker {
	w := &worker{kubelet: k, uid: pod.UID, namespace: pod.Namespace, name: pod.Name,
		dir: filepath.Join(k.dir, "pods", string(pod.UID)), latest: pod,
		deleting: make(chan struct{}), changed: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.update(pod)
	return w
}

func (w *worker) pod() *corev1.Pod {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.latest
}

func (w *worker) update(pod *corev1.Pod) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.latest = pod
	if pod.DeletionTimestamp != nil {
		select {
		case <-w.deleting:
		default:
			close(w.deleting)
		}
	}
}

func (w *worker) isDeleting() bool {
	select {
	case <-w.deleting:
		return true
	default:
		return false
	}
}

func (w *worker) run() {
	defer w.cancel()
	ctx, pod := w.ctx, w.pod()
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return
	}
	w.ip = w.kubelet.takeIP()
	defer w.kubelet.giveIP(w.ip)
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		w.set(func(s *status) { s.wait("CreateContainerError", err.Error()) })
	}
	defer os.RemoveAll(w.dir)
	writing, stopWriting := context.WithCancel(ctx)
	written := make(chan struct{})
	go func() { w.writeStatuses(writing); close(written) }()
	w.set(func(s *status) { s.wait("ContainerCreating", "") })

	w.containers(ctx)

	stopWriting()
	<-written
	if w.isDeleting() {
		w.remove(ctx)
	}
}

// containers runs the init containers one after another and then the one container, until the pod
// has ended or is to end.
func (w *worker) containers(ctx context.Context) {
	spec := w.pod().Spec
	if len(spec.Containers) != 1 {
		w.set(func(s *status) { s.wait("CreateContainerError", "only pods of one container run here") })
		<-w.deleting
		return
	}
	for _, container := range spec.InitContainers {
		if !w.untilEnd(ctx, container, corev1.RestartPolicyOnFailure) {
			return
		}
	}
	w.set(func(s *status) { s.initialized = true })
	if w.untilEnd(ctx, spec.Containers[0], spec.RestartPolicy) {
		<-w.deleting
	}
}

// untilEnd runs a container, again where its policy says so. True when it has ended for good, false
// when the pod is to end.
func (w *worker) untilEnd(ctx context.Context, container corev1.Container, policy corev1.RestartPolicy) bool {
	backoff := firstBackoff
	for ctx.Err() == nil {
		if w.isDeleting() {
			return false
		}
		p, err := w.start(ctx, container)
		if err != nil {
			reason := "CreateContainerError"
			if errors.Is(err, errImage) {
				reason = "ErrImagePull"
			}
			w.set(func(s *status) { s.wait(reason, err.Error()) })
			if !w.pause(ctx, time.Second) {
				return false
			}
			continue
		}
		ended := w.watch(ctx, container, p)
		code := p.code
		w.set(func(s *status) { s.terminated(code, p.signal) })
		if !ended {
			return false
		}
		if code == 0 && policy != corev1.RestartPolicyAlways || policy == corev1.RestartPolicyNever {
			w.set(func(s *status) { s.finish(code == 0) })
			return true
		}
		w.restarts++
		w.set(func(s *status) {
			s.restarts = int32(w.restarts)
			s.wait("CrashLoopBackOff", fmt.Sprintf("back-off %v restarting failed container", backoff))
		})
		if !w.pause(ctx, backoff) {
			return false
		}
		backoff = min(2*backoff, maxBackoff)
	}
	return false
}

// pause waits; false when the pod is to end.
func (w *worker) pause(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-w.deleting:
		return false
	case <-time.After(wait):
		return true
	}
}

// watch follows a running container to its end. False when it ended because the pod is to end.
func (w *worker) watch(ctx context.Context, container corev1.Container, p *process) bool {
	w.set(func(s *status) { s.running(p.started) })
	dead := make(chan string, 2)
	err := w.probes(ctx, container, p.ended, func(ok bool) { w.set(func(s *status) { s.ready = ok }) },
		func(why string) { dead <- why })
	if err != nil {
		dead <- err.Error()
	}
	select {
	case <-ctx.Done():
		p.kill(syscall.SIGKILL)
		<-p.ended
		return false
	case <-p.ended:
		return !w.isDeleting()
	case why := <-dead:
		w.kubelet.events.Event(w.pod(), corev1.EventTypeNormal, "Killing", why)
		w.end(ctx, container, p, w.grace())
		return true
	case <-w.deleting:
		w.end(ctx, container, p, w.grace())
		return false
	}
}

func (w *worker) grace() time.Duration {
	pod := w.pod()
	seconds := int64(30)
	if pod.DeletionGracePeriodSeconds != nil {
		seconds = *pod.DeletionGracePeriodSeconds
	} else if pod.Spec.TerminationGracePeriodSeconds != nil {
		seconds = *pod.Spec.TerminationGracePeriodSeconds
	}
	return time.Duration(seconds) * time.Second
}

// end runs preStop, then SIGTERM, and SIGKILL when the grace, which counts from the beginning, is over.
func (w *worker) end(ctx context.Context, container corev1.Container, p *process, grace time.Duration) {
	over := time.After(grace)
	wait := func(until <-chan time.Time) bool {
		select {
		case <-p.ended:
			return true
		case <-until:
			return false
		case <-over:
			over = time.After(0)
			return false
		case <-ctx.Done():
			over = time.After(0)
			return false
		}
	}
	if hook := container.Lifecycle; hook != nil && hook.PreStop != nil && hook.PreStop.Sleep != nil {
		if wait(time.After(time.Duration(hook.PreStop.Sleep.Seconds) * time.Second)) {
			return
		}
	}
	p.kill(syscall.SIGTERM)
	if wait(nil) {
		return
	}
	w.kubelet.events.Event(w.pod(), corev1.EventTypeWarning, "Killing", "the grace period is over")
	p.kill(syscall.SIGKILL)
	<-p.ended
}

// remove tells the API server that nothing of the pod is left.
func (w *worker) remove(ctx context.Context) {
	now := int64(0)
	for ctx.Err() == nil {
		err := w.kubelet.client.CoreV1().Pods(w.namespace).Delete(ctx, w.name,
			metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &w.uid}})
		if err == nil || isGone(err) {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
}
