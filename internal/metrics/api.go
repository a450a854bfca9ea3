package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/promql"
)

// API answers as Prometheus does: /api/v1/query, query_range, series, labels and label/NAME/values; from
// and to stand in for missing times. It serves only requests that name this machine, and no other
// server's page. At most answersAtOnce are made at once, each within answerTimeout and its request.
func API(e *Engine, from, to time.Time) http.Handler {
	mux := http.NewServeMux()
	places := make(chan struct{}, answersAtOnce)
	handle := func(path string, answer func(*http.Request) (any, []string, error)) {
		mux.HandleFunc("/api/v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !isLocal(r.Host) {
				http.Error(w, "ask for localhost", http.StatusForbidden)
				return
			}
			if isForeign(r) {
				http.Error(w, "no page of another server is answered", http.StatusForbidden)
				return
			}
			if r.Method != http.MethodGet && r.Method != http.MethodPost {
				http.Error(w, "want GET or POST", http.StatusMethodNotAllowed)
				return
			}
			r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
			ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
			defer cancel()
			r = r.WithContext(ctx)
			err := r.ParseForm()
			var data any
			var warnings []string
			switch {
			case err != nil:
				err = &MistakeError{Err: err}
			case len(r.Form["match[]"]) > mostSelectors:
				err = &MistakeError{Err: fmt.Errorf("there are %d of match[], and at most %d are answered", len(r.Form["match[]"]), mostSelectors)}
			default:
				select {
				case places <- struct{}{}:
					data, warnings, err = answer(r)
					<-places
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
			}
			respond(w, data, warnings, err)
		})
	}
	handle("query", func(r *http.Request) (any, []string, error) {
		at, err := timeIn(r, "time", to)
		if err != nil {
			return nil, nil, err
		}
		a, err := e.At(r.Context(), r.Form.Get("query"), at)
		return a, a.Warnings, err
	})
	handle("query_range", func(r *http.Request) (any, []string, error) {
		from, to, err := spanIn(r, from, to)
		if err != nil {
			return nil, nil, err
		}
		each, err := durationIn(r.Form.Get("step"))
		if err != nil {
			return nil, nil, err
		}
		a, err := e.Range(r.Context(), r.Form.Get("query"), from, to, each)
		return a, a.Warnings, err
	})
	listed := func(list func(r *http.Request, from, to time.Time) (any, error)) func(*http.Request) (any, []string, error) {
		return func(r *http.Request) (any, []string, error) {
			from, to, err := spanIn(r, from, to)
			if err != nil {
				return nil, nil, err
			}
			data, err := list(r, from, to)
			return data, nil, err
		}
	}
	handle("series", listed(func(r *http.Request, from, to time.Time) (any, error) {
		if len(r.Form["match[]"]) == 0 {
			return nil, &MistakeError{Err: errors.New("there is no match[]")}
		}
		return e.Series(r.Context(), r.Form["match[]"], from, to)
	}))
	handle("labels", listed(func(r *http.Request, from, to time.Time) (any, error) {
		return e.Labels(r.Context(), "", r.Form["match[]"], from, to)
	}))
	handle("label/{name}/values", listed(func(r *http.Request, from, to time.Time) (any, error) {
		return e.Labels(r.Context(), r.PathValue("name"), r.Form["match[]"], from, to)
	}))
	return mux
}

// The bounds of answers by HTTP.
const (
	answerTimeout = 20 * time.Second
	answersAtOnce = 4
	mostSelectors = 100
)

// isForeign reports whether a browser asks on behalf of a page that is not this server's.
func isForeign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host
}

func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func respond(w http.ResponseWriter, data any, warnings []string, err error) {
	answer := struct {
		Status    string   `json:"status"`
		Data      any      `json:"data,omitempty"`
		ErrorType string   `json:"errorType,omitempty"`
		Error     string   `json:"error,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
	}{Status: "success", Data: data, Warnings: warnings}
	code := http.StatusOK
	if err != nil {
		answer.Status, answer.Data, answer.Error = "error", nil, err.Error()
		answer.ErrorType, code = "execution", http.StatusUnprocessableEntity
		if errors.As(err, new(*MistakeError)) {
			answer.ErrorType, code = "bad_data", http.StatusBadRequest
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.As(err, new(promql.ErrQueryTimeout)):
			answer.ErrorType, code = "timeout", http.StatusServiceUnavailable
		case errors.Is(err, context.Canceled), errors.As(err, new(promql.ErrQueryCanceled)):
			answer.ErrorType, code = "canceled", http.StatusServiceUnavailable
		}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(text) // fails if the client is gone
}

func spanIn(r *http.Request, from, to time.Time) (time.Time, time.Time, error) {
	start, err := timeIn(r, "start", from)
	if err != nil {
		return start, to, err
	}
	end, err := timeIn(r, "end", to)
	return start, end, err
}

// timeIn returns a time, in seconds since 1970 or by RFC 3339.
func timeIn(r *http.Request, name string, missing time.Time) (time.Time, error) {
	text := r.Form.Get(name)
	if text == "" {
		return missing, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1e12 {
		whole, part := math.Modf(s)
		return time.Unix(int64(whole), int64(math.Round(part*1000))*1e6).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		err = &MistakeError{Err: fmt.Errorf("%s %q is not a time: want seconds since 1970, or one by RFC 3339", name, text)}
	}
	return t, err
}

// durationIn returns a step, in seconds or as 15s.
func durationIn(text string) (time.Duration, error) {
	if s, err := strconv.ParseFloat(text, 64); err == nil && s > 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		err = &MistakeError{Err: fmt.Errorf("step %q is not a time: want seconds, or one such as 15s", text)}
	}
	return d, err
}
