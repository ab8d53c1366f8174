package main

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const leaseNamespace = "kube-node-lease"

// register makes the node and says that it is ready. Its resources are stated, not measured: what a
// test asks of the scheduler must not depend on the machine.
func (k *kubelet) register(ctx context.Context, labels string) error {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"),
		corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.node, Labels: map[string]string{
		"kubernetes.io/hostname": k.node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}}
	for _, label := range strings.Split(labels, ",") {
		if key, value, ok := strings.Cut(label, "="); ok {
			node.Labels[key] = value
		}
	}
	nodes := k.client.CoreV1().Nodes()
	_, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Others write to a new node too.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, k.node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now := metav1.Now()
		node.Status = corev1.NodeStatus{Capacity: resources, Allocatable: resources,
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.244.0.1"}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
				Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now}},
			NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// renewLease tells the control plane that the node lives.
func (k *kubelet) renewLease(ctx context.Context) {
	const seconds = 4
	duration := int32(seconds * 4)
	leases := k.client.CoordinationV1().Leases(leaseNamespace)
	for ; ctx.Err() == nil; time.Sleep(seconds * time.Second) {
		now := metav1.NowMicro()
		spec := coordinationv1.LeaseSpec{HolderIdentity: &k.node, LeaseDurationSeconds: &duration, RenewTime: &now}
		lease, err := leases.Get(ctx, k.node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.node}, Spec: spec}, metav1.CreateOptions{})
		} else if err == nil {
			lease.Spec = spec
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		}
		if err != nil {
			log.Print(fmt.Errorf("lease of %s: %w", k.node, err))
		}
	}
}
