package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

const defaultTimeout = 10 * time.Second

// The hook asked to be called again later.
type tooEarly struct{ wait time.Duration }

func (e tooEarly) Error() string { return fmt.Sprintf("asked again in %v", e.wait) }

// call posts one request. The answer must be 200 with no member that `answer` does not have.
func call(ctx context.Context, h hook, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	timeout := h.Webhook.Timeout.Duration
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, h.Webhook.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusTooManyRequests {
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			seconds = 1
		}
		return tooEarly{time.Duration(seconds) * time.Second}
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", h.Webhook.URL, response.StatusCode, text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(answer)
}
