package main

import (
	"os/exec"
	"runtime"
)

var toStart = make(chan func())

// A child told to die with its parent dies with the thread that started it, so one thread that never
// ends starts them all.
func init() {
	go func() {
		runtime.LockOSThread()
		for start := range toStart {
			start()
		}
	}()
}

func startLocked(command *exec.Cmd) error {
	done := make(chan error)
	toStart <- func() { done <- command.Start() }
	return <-done
}
