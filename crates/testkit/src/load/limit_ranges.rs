//! LimitRanges, to see what they cost.

use std::env;

use serde_json::{Value, json};

/// One as administrators give it to every namespace. It takes the captured pods, injected or not.
pub fn of(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"namespace": namespace, "name": "bounds"},
        "spec": {"limits": [
            {
                "type": "Container", "min": {"cpu": "1m", "memory": "4Mi"}, "max": {"cpu": "16", "memory": "64Gi"},
                "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m", "memory": "128Mi"},
                "maxLimitRequestRatio": {"cpu": "1000", "memory": "1000"},
            },
            {"type": "Pod", "max": {"cpu": "64", "memory": "256Gi"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Mi"}, "max": {"storage": "10Ti"}},
        ]},
    })
}

/// How many there are, each in its own namespace, by the environment.
pub fn count(usual: usize) -> usize {
    const COUNT: &str = "OTEL_WEBHOOK_BENCH_LIMIT_RANGES";
    let asked = env::var(COUNT).unwrap_or_default();
    if asked.is_empty() { usual } else { asked.parse().unwrap_or_else(|_| panic!("{COUNT}={asked}")) }
}
