package main

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A hook server in a process of its own.
type server struct {
	process *exec.Cmd
	url     string
	client  *http.Client
}

// startServer runs a program with a free port as its last argument and waits until it listens.
func startServer(program string, arguments ...string) *server {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	s := &server{process: exec.Command(program, append(arguments, strconv.Itoa(port))...), url: fmt.Sprintf("http://127.0.0.1:%d/sync", port),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
	if err := s.process.Start(); err != nil {
		log.Fatal(err)
	}
	for range 200 {
		connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			connection.Close()
			return s
		}
		time.Sleep(20 * time.Millisecond)
	}
	log.Fatalf("%s does not listen", program)
	return nil
}

func (s *server) stop() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// sync posts one body; a model whose pods were not asked yet is asked again.
func (s *server) sync(body []byte) []byte {
	for {
		response, err := s.client.Post(s.url, "application/json", bytes.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		if response.StatusCode == http.StatusTooManyRequests {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if response.StatusCode != http.StatusOK {
			log.Fatalf("%d: %s", response.StatusCode, text)
		}
		return text
	}
}

type result struct{ perSecond, p99, cpu float64 } // p99 and CPU of the server for each answer in milliseconds

// load posts the body over a few connections for a while.
func (s *server) load(body []byte) result {
	var mutex sync.Mutex
	var all []float64
	var group sync.WaitGroup
	start, cpuBefore := time.Now(), s.cpu()
	for range connections {
		group.Go(func() {
			var times []float64
			for time.Since(start) < roundTime {
				asked := time.Now()
				s.sync(body)
				times = append(times, time.Since(asked).Seconds()*1000)
			}
			mutex.Lock()
			all = append(all, times...)
			mutex.Unlock()
		})
	}
	group.Wait()
	slices.Sort(all)
	return result{float64(len(all)) / time.Since(start).Seconds(), all[len(all)*99/100],
		(s.cpu() - cpuBefore).Seconds() * 1000 / float64(len(all))}
}

func (s *server) proc(file string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", s.process.Process.Pid, file))
	if err != nil {
		log.Fatal(err)
	}
	return string(text)
}

// cpu is what the process has used so far; ticks are hundredths of a second.
func (s *server) cpu() time.Duration {
	stat := s.proc("stat")
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (s *server) residentMiB() float64 {
	for _, line := range strings.Split(s.proc("status"), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return float64(kib) / 1024
		}
	}
	return 0
}

// answerNothing is a name server that knows no name, so that no pod is asked.
func answerNothing() string {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		buffer := make([]byte, 2048)
		for {
			size, peer, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			answer := slices.Clone(buffer[:size])
			answer[2], answer[3] = 0x81, 0x83 // an answer: no such name
			answer[10], answer[11] = 0, 0     // no additional records
			_, _ = socket.WriteTo(answer, peer)
		}
	}()
	return socket.LocalAddr().String()
}
