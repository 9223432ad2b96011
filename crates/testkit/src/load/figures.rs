//! Figures of a run: shown as a table next to those that were committed last.

use std::{collections::BTreeMap, env, fs, path::Path};

use serde::{Deserialize, Serialize};

use crate::files;

/// Where figures are committed.
const COMMITTED: &str = "benches/figures";

/// Set to anything, the figures of this run become the committed ones.
const KEEP: &str = "OTEL_WEBHOOK_KEEP_FIGURES";

/// Less than this is not called a change, however still the machine was.
const LEAST_CHANGE: f64 = 0.03;

/// One figure, by the rounds in which it was measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Figure {
    /// The lowest.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The highest.
    pub high: f64,
}

/// All figures of a run, in the order in which they are shown.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// The processor and how many cores of it there are: figures of another one cannot be compared.
    machine: String,
    figures: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    unit: String,
    #[serde(flatten)]
    figure: Figure,
    /// What the figure has to reach; empty for those that only tell.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    goal: String,
}

impl Figure {
    /// The figure of several rounds.
    pub fn of(rounds: &[f64]) -> Self {
        let mut sorted = rounds.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let end = |end: Option<&f64>| end.copied().unwrap_or_default();
        Self { low: end(sorted.first()), median: middle, high: end(sorted.last()) }
    }

    /// The change since `before`, as a part of it; none where it may be noise.
    fn change_since(&self, before: &Self) -> Option<f64> {
        let apart = self.low > before.high || self.high < before.low;
        let change = self.median / before.median - 1.0;
        (apart && change.abs() >= LEAST_CHANGE).then_some(change)
    }
}

impl Figures {
    /// None yet.
    #[allow(clippy::new_without_default, reason = "it asks the machine")]
    pub fn new() -> Self {
        Self { machine: machine(), figures: Vec::new() }
    }

    /// Adds a figure, with what it has to reach, if anything.
    pub fn add(&mut self, name: impl Into<String>, unit: &str, goal: &str, rounds: &[f64]) {
        let (name, unit, goal) = (name.into(), unit.to_owned(), goal.to_owned());
        self.figures.push(Row { name, unit, figure: Figure::of(rounds), goal });
    }

    /// Prints the table, says what changed since the committed figures, and
    /// writes the figures as JSON into the folder `scratch`.
    pub fn finish(&self, name: &str, scratch: &Path) {
        let file = format!("{name}.json");
        let path = files::path(COMMITTED).join(&file);
        let committed: Option<Self> =
            fs::read_to_string(&path).ok().map(|text| serde_json::from_str(&text).expect("figures"));
        self.print(committed.as_ref());
        let written = if env::var_os(KEEP).is_some() { path } else { scratch.join(file) };
        let mut text = serde_json::to_string_pretty(self).expect("JSON");
        text.push('\n');
        fs::write(&written, text).expect("a writable folder");
        println!("\nwritten to {}", written.display());
    }

    /// Prints the table, next to the committed figures.
    pub fn print(&self, committed: Option<&Self>) {
        println!("\n{}", self.machine);
        let before: BTreeMap<&str, &Figure> = committed
            .into_iter()
            .flat_map(|known| known.figures.iter().map(|row| (row.name.as_str(), &row.figure)))
            .collect();
        println!("\n| what | median | lowest to highest | goal | committed |\n|---|---:|---:|---|---|");
        for row in &self.figures {
            let Row { name, unit, figure, goal } = row;
            let range = format!("{} to {}", shown(figure.low), shown(figure.high));
            let change = before.get(name.as_str()).map(|before| verdict(figure, before)).unwrap_or_default();
            println!("| {name} | {} {unit} | {range} | {goal} | {change} |", shown(figure.median));
        }
        match committed {
            None => println!("\nno figures are committed yet; {KEEP}=1 makes these the first"),
            Some(known) if known.machine != self.machine => {
                println!("\nthe committed figures are of another machine: {}", known.machine);
            }
            Some(_) => {}
        }
    }
}

fn verdict(now: &Figure, before: &Figure) -> String {
    match now.change_since(before) {
        None => format!("{}, the same within noise", shown(before.median)),
        Some(change) => format!("{}, now {:+.0} %", shown(before.median), change * 100.0),
    }
}

/// Three digits that count, or all before the point.
fn shown(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

fn machine() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let cores = text.lines().filter(|line| line.starts_with("processor")).count();
    format!(
        "{} (model {}), {cores} cores",
        field("model name").unwrap_or_else(|| "unknown processor".to_owned()),
        field("model\t").unwrap_or_default()
    )
}
