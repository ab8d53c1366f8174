package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A folder of this machine at a path of the container.
type mount struct {
	Source   string
	Target   string
	ReadOnly bool
	ShmBytes int64 // with a size: a tmpfs of its own instead of Source
}

// volume puts the content of one volume into a folder and returns that.
func (w *worker) volume(ctx context.Context, volume corev1.Volume) (string, error) {
	dir := filepath.Join(w.dir, "volumes", volume.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	core := w.kubelet.client.CoreV1()
	switch {
	case volume.EmptyDir != nil:
		return dir, os.Chmod(dir, 0o777) // stands for fsGroup
	case volume.ConfigMap != nil:
		return dir, w.configMapFiles(ctx, dir, volume.ConfigMap.Name)
	case volume.Secret != nil:
		secret, err := core.Secrets(w.namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return dir, writeFiles(dir, secret.Data)
	case volume.Projected != nil:
		for _, source := range volume.Projected.Sources {
			if err := w.projected(ctx, dir, source); err != nil {
				return "", err
			}
		}
		return dir, nil
	case volume.PersistentVolumeClaim != nil:
		claim, err := core.PersistentVolumeClaims(w.namespace).Get(ctx, volume.PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		bound, err := core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if bound.Spec.HostPath == nil {
			return "", fmt.Errorf("volume %s is no hostPath", bound.Name)
		}
		return bound.Spec.HostPath.Path, nil
	}
	return "", fmt.Errorf("volume %s is of a kind that is not known here", volume.Name)
}

func (w *worker) configMapFiles(ctx context.Context, dir, name string) error {
	found, err := w.kubelet.client.CoreV1().ConfigMaps(w.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for key, text := range found.Data {
		data[key] = []byte(text)
	}
	return writeFiles(dir, data)
}

func (w *worker) projected(ctx context.Context, dir string, source corev1.VolumeProjection) error {
	switch {
	case source.ConfigMap != nil:
		return w.configMapFiles(ctx, dir, source.ConfigMap.Name)
	case source.ServiceAccountToken != nil:
		seconds := int64(24 * 3600)
		token, err := w.kubelet.client.CoreV1().ServiceAccounts(w.namespace).CreateToken(ctx, w.pod().Spec.ServiceAccountName,
			&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds,
				BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.name, UID: w.uid}}},
			metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return writeFiles(dir, map[string][]byte{source.ServiceAccountToken.Path: []byte(token.Status.Token)})
	case source.DownwardAPI != nil: // the namespace, of the token's volume
		return writeFiles(dir, map[string][]byte{"namespace": []byte(w.namespace)})
	}
	return fmt.Errorf("a projection of a kind that is not known here")
}

func writeFiles(dir string, data map[string][]byte) error {
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// mounts prepares every volume that the container uses.
func (w *worker) mounts(ctx context.Context, container corev1.Container) ([]mount, error) {
	var mounts []mount
	for _, wanted := range container.VolumeMounts {
		for _, volume := range w.pod().Spec.Volumes {
			if volume.Name != wanted.Name {
				continue
			}
			m := mount{Target: wanted.MountPath, ReadOnly: wanted.ReadOnly}
			if volume.EmptyDir != nil && volume.EmptyDir.Medium == corev1.StorageMediumMemory && volume.EmptyDir.SizeLimit != nil {
				m.ShmBytes = volume.EmptyDir.SizeLimit.Value()
			} else {
				dir, err := w.volume(ctx, volume)
				if err != nil {
					return nil, err
				}
				m.Source = filepath.Join(dir, wanted.SubPath)
			}
			mounts = append(mounts, m)
		}
	}
	return mounts, nil
}
