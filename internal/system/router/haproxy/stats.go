package haproxy

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Info holds what HAProxy tells of itself as a whole.
type Info struct {
	PID    int
	Values map[string]float64 // all figures, by HAProxy's own names
}

// Info asks for the figures of the whole process.
func (s *Stats) Info() (Info, error) {
	text, err := s.Ask("show info")
	if err != nil {
		return Info{}, err
	}
	return parseInfo(text)
}

func parseInfo(text string) (Info, error) {
	i := Info{Values: make(map[string]float64)}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			i.Values[name] = x
		}
	}
	if i.PID = int(i.Values["Pid"]); i.PID == 0 {
		return i, fmt.Errorf("HAProxy does not tell its process: %q", text[:min(len(text), 80)])
	}
	return i, nil
}

// Totals hold the figures of all frontends, backends and servers.
type Totals struct {
	Queue    float64 // requests that wait for a place at a server
	Retries  float64 // of connections to servers, since the start
	Moved    float64 // to another server, likewise
	Denied   float64 // requests and answers, likewise
	Refused  float64 // requests that are none, likewise
	Unserved float64 // connections to servers that failed, likewise
	Down     float64 // servers that are down
	// What requests took lately on average, in seconds, over the servers that had any.
	QueueTime, ConnectTime, ServerTime, AllTime float64
}

// Totals asks for the figures of all parts and adds them up.
func (s *Stats) Totals() (Totals, error) {
	text, err := s.Ask("show stat")
	if err != nil {
		return Totals{}, err
	}
	return parseStat(text)
}

func parseStat(text string) (Totals, error) {
	var t Totals
	rows := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "# ")))
	rows.ReuseRecord, rows.FieldsPerRecord = true, -1
	header, err := rows.Read()
	if err != nil {
		return t, fmt.Errorf("read HAProxy's figures: %w", err)
	}
	column := make(map[string]int, len(header))
	for i, name := range header {
		column[name] = i
	}
	if _, ok := column["svname"]; !ok {
		return t, fmt.Errorf("read HAProxy's figures: there is no column svname")
	}
	served := 0.0
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t, fmt.Errorf("read HAProxy's figures: %w", err)
		}
		text := func(name string) string {
			if i, ok := column[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		value := func(name string) float64 {
			x, err := strconv.ParseFloat(text(name), 64)
			if err != nil {
				return 0
			}
			return x
		}
		switch text("svname") {
		case "FRONTEND":
			t.Denied += value("dreq") + value("dcon") + value("dses")
			t.Refused += value("ereq")
		case "BACKEND":
			t.Queue += value("qcur")
			t.Retries, t.Moved, t.Unserved = t.Retries+value("wretr"), t.Moved+value("wredis"), t.Unserved+value("econ")
			t.Denied += value("dresp")
		default:
			if strings.HasPrefix(text("status"), "DOWN") {
				t.Down++
			}
			if strings.HasPrefix(text("svname"), "fe_") {
				continue // a frontend of ours, behind another
			}
			// HAProxy averages over the last 1024 requests of each.
			n := min(value("stot"), 1024)
			served += n
			t.QueueTime, t.ConnectTime = t.QueueTime+n*value("qtime"), t.ConnectTime+n*value("ctime")
			t.ServerTime, t.AllTime = t.ServerTime+n*value("rtime"), t.AllTime+n*value("ttime")
		}
	}
	if served > 0 {
		for _, x := range []*float64{&t.QueueTime, &t.ConnectTime, &t.ServerTime, &t.AllTime} {
			*x /= served * 1000
		}
	}
	return t, nil
}
