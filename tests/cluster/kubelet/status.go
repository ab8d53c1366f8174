package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What is known of a pod. The condition times are kept while a condition stays.
type status struct {
	phase       corev1.PodPhase
	initialized bool
	ready       bool
	restarts    int32
	state, last corev1.ContainerState
	readySince  metav1.Time
	wasReady    bool
}

func (s *status) wait(reason, message string) {
	s.phase, s.ready = corev1.PodPending, false
	if s.restarts > 0 {
		s.phase = corev1.PodRunning
	}
	s.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func (s *status) running(since time.Time) {
	s.phase, s.ready = corev1.PodRunning, false
	s.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

func (s *status) terminated(code, signal int) {
	s.ready = false
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	s.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: int32(code), Signal: int32(signal),
		Reason: reason, FinishedAt: metav1.Now()}}
	s.last = s.state
}

func (s *status) finish(succeeded bool) {
	s.phase = corev1.PodFailed
	if succeeded {
		s.phase = corev1.PodSucceeded
	}
}

func (w *worker) set(change func(*status)) {
	w.mutex.Lock()
	change(&w.seen)
	if w.seen.ready != w.seen.wasReady || w.seen.readySince.IsZero() {
		w.seen.wasReady, w.seen.readySince = w.seen.ready, metav1.Now()
	}
	w.mutex.Unlock()
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// writeStatuses brings each change to the API server; what could not be written is tried again. The
// last one is written before it returns.
func (w *worker) writeStatuses(ctx context.Context) {
	for {
		select {
		case <-w.changed:
		case <-ctx.Done():
			select {
			case <-w.changed:
				_ = w.writeStatus(context.Background())
			default:
			}
			return
		}
		if err := w.writeStatus(ctx); err != nil && !isGone(err) && ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond)
			w.set(func(*status) {})
		}
	}
}

func isGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func truth(value bool) corev1.ConditionStatus {
	if value {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func (w *worker) writeStatus(ctx context.Context) error {
	w.mutex.Lock()
	seen, pod := w.seen, w.latest
	w.mutex.Unlock()
	condition := func(kind corev1.PodConditionType, value bool) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: truth(value), LastTransitionTime: seen.readySince}
	}
	started := seen.state.Running != nil
	container := pod.Spec.Containers[0]
	start := pod.CreationTimestamp
	written := corev1.PodStatus{Phase: seen.phase, PodIP: w.ip.String(), PodIPs: []corev1.PodIP{{IP: w.ip.String()}},
		HostIP: podGateway, StartTime: &start,
		Conditions: []corev1.PodCondition{condition(corev1.PodInitialized, seen.initialized),
			condition(corev1.ContainersReady, seen.ready), condition(corev1.PodReady, seen.ready)},
		ContainerStatuses: []corev1.ContainerStatus{{Name: container.Name, Image: container.Image, ImageID: container.Image,
			Ready: seen.ready, Started: &started, RestartCount: seen.restarts, State: seen.state, LastTerminationState: seen.last}}}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.uid}, "status": written})
	if err != nil {
		return err
	}
	_, err = w.kubelet.client.CoreV1().Pods(w.namespace).Patch(ctx, w.name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}
