// How fast the hooks answer, beside a net/http server that decodes the same bodies and encodes the same
// answers and does nothing else:  hooks ASHLAR_HOOKS [rounds]
package main

import (
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"time"
)

const (
	connections = 4
	roundTime   = 2 * time.Second
	manyModels  = 10_000
)

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// compare runs both servers in turns, so that what else the machine does falls on both.
func compare(hooks, peer *server, children, rounds int) {
	observed := observedChildren(hooks, children)
	body := syncBody("demo", observed, answerOf(hooks, observed).Status)
	peer.learn(body, hooks.sync(body))
	var ours, theirs []result
	var ratios []float64
	for range rounds {
		ours, theirs = append(ours, hooks.load(body)), append(theirs, peer.load(body))
		ratios = append(ratios, ours[len(ours)-1].perSecond/theirs[len(theirs)-1].perSecond)
	}
	of := func(results []result, value func(result) float64) float64 {
		var values []float64
		for _, r := range results {
			values = append(values, value(r))
		}
		return median(values)
	}
	fmt.Printf("%d children, body of %.1f kB\n", children, float64(len(body))/1000)
	for _, side := range []struct {
		name    string
		results []result
	}{{"hooks", ours}, {"net/http", theirs}} {
		fmt.Printf("  %-8s %6.0f answers/s, p99 %6.2f ms, %.3f ms of CPU each\n", side.name,
			of(side.results, func(r result) float64 { return r.perSecond }), of(side.results, func(r result) float64 { return r.p99 }),
			of(side.results, func(r result) float64 { return r.cpu }))
	}
	fmt.Printf("  answers/s of the hooks over net/http: median %.2f, %.2f to %.2f\n", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// resync is one sync of each of many models, after each is known.
func resync(hooks *server) {
	children := observedChildren(hooks, 2)
	status := answerOf(hooks, children).Status
	bodies := make([][]byte, manyModels)
	for i := range bodies {
		bodies[i] = syncBody(fmt.Sprintf("demo-%d", i), children, status)
	}
	for _, body := range bodies {
		hooks.sync(body)
	}
	before := hooks.cpu()
	for _, body := range bodies {
		hooks.sync(body)
	}
	fmt.Printf("%d models: a resync of all takes %.2f s of CPU; resident %.1f MiB\n", manyModels,
		(hooks.cpu() - before).Seconds(), hooks.residentMiB())
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "peer" {
		log.Fatal(servePeer(os.Args[2]))
	}
	rounds := 7
	if len(os.Args) > 2 {
		rounds, _ = strconv.Atoi(os.Args[2])
	}
	dns := answerNothing()
	hooks := startServer(os.Args[1], "serve", "--host", "127.0.0.1", "--resolver", dns, "--port")
	defer hooks.stop()
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	peer := startServer(self, "peer")
	defer peer.stop()
	compare(hooks, peer, 2, rounds)
	compare(hooks, peer, 50, rounds)
	resync(hooks)
}
