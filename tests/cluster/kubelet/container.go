package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A running container: the process and what becomes of it.
type process struct {
	started time.Time
	command *exec.Cmd
	ended   chan struct{} // closed once it has ended
	code    int           // its exit status, once ended
	signal  int
}

func (p *process) kill(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Whether this kubelet may become another user: not when it is root of its own user namespace only.
func mayChangeUser() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	var inside, outside, count int64
	_, scanErr := fmt.Sscan(string(text), &inside, &outside, &count)
	return err == nil && scanErr == nil && count > 65536
}

func environment(container corev1.Container) ([]string, error) {
	env := []string{"PATH=/usr/bin:/bin", "KUBERNETES_SERVICE_HOST=10.0.0.1", "KUBERNETES_SERVICE_PORT=443"}
	for _, variable := range container.Env {
		if variable.ValueFrom != nil {
			return nil, fmt.Errorf("variable %s: valueFrom is not known here", variable.Name)
		}
		env = append(env, variable.Name+"="+variable.Value)
	}
	return env, nil
}

func (w *worker) sandboxOf(ctx context.Context, container corev1.Container) (sandbox, error) {
	pod := w.pod()
	program, ok := w.kubelet.images[container.Image]
	if !ok {
		return sandbox{}, errImage
	}
	mounts, err := w.mounts(ctx, container)
	if err != nil {
		return sandbox{}, err
	}
	env, err := environment(container)
	if err != nil {
		return sandbox{}, err
	}
	bin := filepath.Dir(program)
	mounts = append([]mount{{Source: bin, Target: imageRoot + "/bin"}}, mounts...)
	if lib := filepath.Join(filepath.Dir(bin), "lib"); exists(lib) {
		mounts = append(mounts, mount{Source: lib, Target: imageRoot + "/lib"})
	}
	hostname := pod.Spec.Hostname
	if hostname == "" {
		hostname = pod.Name
	}
	box := sandbox{Root: filepath.Join(w.dir, "root"), Hostname: hostname, Address: w.ip.String(),
		Hosts: fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", w.ip, hostname),
		Resolv: fmt.Sprintf("nameserver %s\nsearch %s.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n",
			w.kubelet.clusterDNS, w.namespace),
		Mounts: mounts, Program: imageRoot + "/bin/" + filepath.Base(program), Args: container.Args, Env: env}
	if security := pod.Spec.SecurityContext; security != nil && security.RunAsUser != nil && mayChangeUser() {
		box.User = int(*security.RunAsUser)
		box.Group = box.User
	}
	if security := container.SecurityContext; security != nil && security.ReadOnlyRootFilesystem != nil {
		box.ReadOnly = *security.ReadOnlyRootFilesystem
	}
	return box, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// start runs the container. Its output goes to DIR/log/NAMESPACE_POD_CONTAINER.
func (w *worker) start(ctx context.Context, container corev1.Container) (*process, error) {
	box, err := w.sandboxOf(ctx, container)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(box.Root, 0o755); err != nil {
		return nil, err
	}
	logs := filepath.Join(w.kubelet.dir, "log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(filepath.Join(logs, w.namespace+"_"+w.name+"_"+container.Name),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	p := &process{command: exec.Command("/proc/self/exe", "sandbox"), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = output, output
	p.command.ExtraFiles = []*os.File{read}
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	err = startLocked(p.command)
	read.Close()
	if err != nil {
		return nil, err
	}
	p.started = time.Now()
	go func() {
		_ = p.command.Wait()
		state := p.command.ProcessState.Sys().(syscall.WaitStatus)
		p.code = state.ExitStatus()
		if state.Signaled() {
			p.signal, p.code = int(state.Signal()), 128+int(state.Signal())
		}
		close(p.ended)
	}()
	if err := w.connect(p.command.Process.Pid); err != nil {
		p.kill(syscall.SIGKILL)
		return nil, err
	}
	return p, json.NewEncoder(write).Encode(box)
}

// connect gives the process an eth0 on the bridge.
func (w *worker) connect(pid int) error {
	name := "v" + string(w.uid)[:8] + fmt.Sprint(w.restarts%10)
	if err := ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprint(pid)); err != nil {
		return err
	}
	return ip("link", "set", name, "master", podBridge, "up")
}
