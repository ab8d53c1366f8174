package main

import (
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
)

const ttlSeconds = 1

// serveDNS answers for SERVICE.NAMESPACE.svc.DOMAIN: the Service's address, or of a headless one the
// endpoints'. Any other name is not known.
func serveDNS(d *directory, address, domain string) error {
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	buffer := make([]byte, 4096)
	for {
		size, peer, err := socket.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if answer := answerDNS(d, domain, buffer[:size]); answer != nil {
			_, _ = socket.WriteTo(answer, peer)
		}
	}
}

func answerDNS(d *directory, domain string, packet []byte) []byte {
	var question dnsmessage.Message
	if question.Unpack(packet) != nil || len(question.Questions) != 1 {
		return nil
	}
	asked := question.Questions[0]
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: question.ID, Response: true, Authoritative: true,
		RecursionDesired: question.RecursionDesired, RecursionAvailable: true}, Questions: question.Questions}
	addresses, known := lookUp(d, domain, asked.Name.String())
	if !known {
		answer.RCode = dnsmessage.RCodeNameError
	}
	if asked.Type == dnsmessage.TypeA {
		for _, text := range addresses {
			record := &dnsmessage.AResource{}
			copy(record.A[:], net.ParseIP(text).To4())
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Body: record,
				Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: ttlSeconds}})
		}
	}
	out, err := answer.Pack()
	if err != nil {
		return nil
	}
	return out
}

func lookUp(d *directory, domain, name string) (addresses []string, known bool) {
	rest, ok := strings.CutSuffix(strings.ToLower(name), ".svc."+domain+".")
	service, namespace, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 {
		return nil, false
	}
	found, err := d.services.Services(namespace).Get(service)
	if err != nil {
		return nil, false
	}
	if hasAddress(found) {
		return []string{found.Spec.ClusterIP}, true
	}
	addresses, _ = d.addresses(serviceKey{namespace, service})
	return addresses, true
}
