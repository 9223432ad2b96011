// Command panels evaluates the queries of a dashboard over a time, on given series,
// with Prometheus' own engine.
//
// Standard input is a JSON object: "series" in Prometheus' test notation with one
// value each "interval", "end" in seconds after the first value, and "queries". A
// query is evaluated once each interval.
// Standard output is, for each query, its series, each with its "labels" and its
// "points": pairs of seconds after the first value and a value.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/promql/promqltest"
)

type input struct {
	Series   map[string]string `json:"series"`
	Interval string            `json:"interval"`
	End      int64             `json:"end"`
	Queries  []string          `json:"queries"`
}

type line struct {
	Labels map[string]string `json:"labels"`
	Points [][2]float64      `json:"points"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "panels:", err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	interval, err := model.ParseDuration(in.Interval)
	if err != nil {
		return err
	}
	load := strings.Builder{}
	fmt.Fprintf(&load, "load %s\n", in.Interval)
	for name, values := range in.Series {
		fmt.Fprintf(&load, "  %s %s\n", name, values)
	}
	loader, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{
		EnableAtModifier: true, EnableNegativeOffset: true,
	})
	if err != nil {
		return err
	}
	defer loader.Close()
	end := time.Unix(in.End, 0)
	loader.WithSamplesTill(end, func(failed error) { err = failed })
	if err != nil {
		return err
	}
	results := make([][]line, 0, len(in.Queries))
	for _, query := range in.Queries {
		lines, err := evaluate(loader, query, end, time.Duration(interval))
		if err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		results = append(results, lines)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func evaluate(loader *promqltest.LazyLoader, query string, end time.Time, step time.Duration) ([]line, error) {
	ctx := context.Background()
	asked, err := loader.QueryEngine().NewRangeQuery(ctx, loader.Queryable(), nil, query, time.Unix(0, 0), end, step)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	matrix, err := asked.Exec(ctx).Matrix()
	if err != nil {
		return nil, err
	}
	lines := make([]line, 0, len(matrix))
	for _, series := range matrix {
		points := make([][2]float64, 0, len(series.Floats))
		for _, point := range series.Floats {
			// JSON has no word for the others.
			if !math.IsNaN(point.F) && !math.IsInf(point.F, 0) {
				points = append(points, [2]float64{float64(point.T) / 1000, point.F})
			}
		}
		lines = append(lines, line{Labels: series.Metric.Map(), Points: points})
	}
	return lines, nil
}
