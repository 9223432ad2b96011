// Command alerts checks rules of Prometheus and evaluates their alerts on given
// series, with Prometheus' own parser and engine. Prometheus' program for that,
// promtool, comes with the client of every cloud.
//
// Standard input is a JSON object: "rules", a file of rules as text, and "cases",
// each with the name of an "alert", "series" in Prometheus' test notation with
// one value a minute (or each "interval"), and the "minute" of the evaluation.
// Standard output is, for each case, the labels for which the alert's condition
// holds; with "waits", those for which the alert fires: its condition held in each
// evaluation of its waiting time.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
)

type input struct {
	Rules string `json:"rules"`
	Cases []struct {
		Alert    string            `json:"alert"`
		Series   map[string]string `json:"series"`
		Interval string            `json:"interval"`
		Minute   int64             `json:"minute"`
		Waits    bool              `json:"waits"`
	} `json:"cases"`
}

// alert is the part of a rule that decides whether it fires.
type alert struct {
	expression string
	wait       time.Duration
}

// evaluationInterval is the time between two evaluations of a rule.
const evaluationInterval = 15 * time.Second

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "alerts:", err)
		os.Exit(1)
	}
}

func run() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	alerts, err := alertsOf(in.Rules)
	if err != nil {
		return err
	}
	results := make([][]map[string]string, 0, len(in.Cases))
	for _, c := range in.Cases {
		found, known := alerts[c.Alert]
		if !known {
			return fmt.Errorf("there is no alert %q", c.Alert)
		}
		if !c.Waits {
			found.wait = 0
		}
		interval := c.Interval
		if interval == "" {
			interval = "1m"
		}
		result, err := firing(found, interval, c.Series, time.Unix(c.Minute*60, 0))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Alert, err)
		}
		results = append(results, result)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// alertsOf reads rules as a Prometheus would that loads them: names,
// durations, expressions and the templates of annotations have to be right.
func alertsOf(rules string) (map[string]alert, error) {
	groups, errs := rulefmt.Parse(
		[]byte(rules), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 {
		return nil, fmt.Errorf("%v", errs)
	}
	alerts := map[string]alert{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			alerts[rule.Alert] = alert{expression: rule.Expr, wait: time.Duration(rule.For)}
		}
	}
	return alerts, nil
}

// firing gives the labels for which the condition held in each evaluation of the waiting time.
func firing(rule alert, interval string, series map[string]string, at time.Time) ([]map[string]string, error) {
	var held []map[string]string
	for moment := at.Add(-rule.wait); !moment.After(at); moment = moment.Add(evaluationInterval) {
		result, err := evaluate(rule.expression, interval, series, moment)
		if err != nil {
			return nil, err
		}
		if moment.Equal(at.Add(-rule.wait)) {
			held = result
		}
		held = slices.DeleteFunc(held, func(one map[string]string) bool {
			return !slices.ContainsFunc(result, func(other map[string]string) bool { return maps.Equal(one, other) })
		})
	}
	return held, nil
}

func evaluate(expression, interval string, series map[string]string, at time.Time) ([]map[string]string, error) {
	load := strings.Builder{}
	fmt.Fprintf(&load, "load %s\n", interval)
	for name, values := range series {
		fmt.Fprintf(&load, "  %s %s\n", name, values)
	}
	loader, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{
		EnableAtModifier: true, EnableNegativeOffset: true,
	})
	if err != nil {
		return nil, err
	}
	defer loader.Close()
	loader.WithSamplesTill(at, func(failed error) { err = failed })
	if err != nil {
		return nil, err
	}
	query, err := loader.QueryEngine().NewInstantQuery(context.Background(), loader.Queryable(), nil, expression, at)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	vector, err := query.Exec(context.Background()).Vector()
	if err != nil {
		return nil, err
	}
	result := make([]map[string]string, 0, len(vector))
	for _, sample := range vector {
		result = append(result, sample.Metric.Map())
	}
	return result, nil
}
