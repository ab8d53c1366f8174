package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// What the kubelet tells a process that has just got its namespaces: how to become the container.
type sandbox struct {
	Root     string // an empty folder, which becomes the container's root
	Hostname string
	Address  string // of eth0
	Hosts    string // content of /etc/hosts
	Resolv   string // content of /etc/resolv.conf
	Mounts   []mount
	User     int // 0: as the kubelet
	Group    int
	ReadOnly bool // the root file system
	Program  string
	Args     []string
	Env      []string
}

const podBridge = "br0"
const podGateway = "10.244.0.1"

// Where the image's program lies in the container, with what stands beside its folder.
const imageRoot = "/image"

// What a program of a Debian machine needs to run; read-only.
var hostFolders = []string{"/usr", "/etc/ssl", "/sys"}
var hostLinks = []string{"/bin", "/sbin", "/lib", "/lib64"}
var devices = []string{"null", "zero", "random", "urandom"}

// enterSandbox runs as the first process of the new namespaces: reads a sandbox from file 3, builds
// it and becomes the program. Returns only what went wrong.
func enterSandbox() error {
	var box sandbox
	if err := json.NewDecoder(os.NewFile(3, "sandbox")).Decode(&box); err != nil {
		return fmt.Errorf("no sandbox: %w", err)
	}
	if err := syscall.Sethostname([]byte(box.Hostname)); err != nil {
		return err
	}
	for _, line := range []string{"link set lo up", "addr add " + box.Address + "/16 dev eth0", "link set eth0 up",
		"route add default via " + podGateway} {
		if err := ip(strings.Fields(line)...); err != nil {
			return err
		}
	}
	if err := buildRoot(box); err != nil {
		return err
	}
	if err := syscall.Chroot(box.Root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if box.User != 0 {
		if err := syscall.Setgroups(nil); err != nil {
			return err
		}
		if err := syscall.Setgid(box.Group); err != nil {
			return err
		}
		if err := syscall.Setuid(box.User); err != nil {
			return err
		}
	}
	return syscall.Exec(box.Program, append([]string{box.Program}, box.Args...), box.Env)
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %s", strings.Join(args, " "), out)
	}
	return nil
}

func buildRoot(box sandbox) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", box.Root, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, folder := range []string{"etc", "proc", "dev", "tmp", "run", "var"} {
		if err := os.Mkdir(filepath.Join(box.Root, folder), 0o755); err != nil {
			return err
		}
	}
	for _, link := range hostLinks {
		if err := os.Symlink("usr"+link, filepath.Join(box.Root, link)); err != nil {
			return err
		}
	}
	for _, folder := range hostFolders {
		if err := bind(box.Root, mount{Source: folder, Target: folder}); err != nil {
			return err
		}
	}
	for _, device := range devices {
		path := "/dev/" + device
		if err := os.WriteFile(filepath.Join(box.Root, path), nil, 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(path, filepath.Join(box.Root, path), "", syscall.MS_BIND, ""); err != nil {
			return err
		}
	}
	files := map[string]string{"etc/hosts": box.Hosts, "etc/resolv.conf": box.Resolv,
		"etc/passwd": "root:x:0:0::/:/bin/sh\n", "etc/nsswitch.conf": "hosts: files dns\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(box.Root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := syscall.Mount("proc", filepath.Join(box.Root, "proc"), "proc", 0, ""); err != nil {
		return err
	}
	for _, m := range box.Mounts {
		if err := bind(box.Root, m); err != nil {
			return err
		}
	}
	if !box.ReadOnly {
		return nil
	}
	return syscall.Mount("", box.Root, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}

func bind(root string, m mount) error {
	target := filepath.Join(root, m.Target)
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if m.ShmBytes > 0 {
		return syscall.Mount("tmpfs", target, "tmpfs", 0, fmt.Sprintf("mode=1777,size=%d", m.ShmBytes))
	}
	if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("%s at %s: %w", m.Source, m.Target, err)
	}
	if !m.ReadOnly {
		return nil
	}
	return syscall.Mount("", target, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, "")
}
