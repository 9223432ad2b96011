// Command alerts checks rules of Prometheus and evaluates their alerts on given
// series, with Prometheus' own parser and engine. Prometheus' program for that,
// promtool, comes with the client of every cloud.
//
// Standard input is a JSON object: "rules", a file of rules as text, and "cases",
// each with the name of an "alert", "series" in Prometheus' test notation with
// one value a minute, and the "minute" of the evaluation. Standard output is, for
// each case, the labels for which the alert's condition holds.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
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
		Alert  string            `json:"alert"`
		Series map[string]string `json:"series"`
		Minute int64             `json:"minute"`
	} `json:"cases"`
}

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
	expressions, err := expressionsOf(in.Rules)
	if err != nil {
		return err
	}
	results := make([][]map[string]string, 0, len(in.Cases))
	for _, c := range in.Cases {
		expression, known := expressions[c.Alert]
		if !known {
			return fmt.Errorf("there is no alert %q", c.Alert)
		}
		result, err := evaluate(expression, c.Series, time.Unix(c.Minute*60, 0))
		if err != nil {
			return fmt.Errorf("%s: %w", c.Alert, err)
		}
		results = append(results, result)
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

// expressionsOf reads rules as a Prometheus would that loads them: names,
// durations, expressions and the templates of annotations have to be right.
func expressionsOf(rules string) (map[string]string, error) {
	groups, errs := rulefmt.Parse(
		[]byte(rules), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	if len(errs) > 0 {
		return nil, fmt.Errorf("%v", errs)
	}
	expressions := map[string]string{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			expressions[rule.Alert] = rule.Expr
		}
	}
	return expressions, nil
}

func evaluate(expression string, series map[string]string, at time.Time) ([]map[string]string, error) {
	load := strings.Builder{}
	load.WriteString("load 1m\n")
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
