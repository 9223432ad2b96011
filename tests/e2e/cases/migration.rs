//! Moving over from the operator, by the very commands of docs/guides/migration.md,
//! with pods created all the while.
//!
//! Another instance of the program stands for the operator, told to do as it
//! does; what it injects has no stamp.

mod world;

use std::collections::BTreeSet;

use otel_webhook_testkit::{
    cluster::{created::Created, manifests::java, traffic::Traffic},
    until::until,
};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::program::check;
use world::{By, NAMESPACES, OPERATOR, World, by};

/// Headings of the document that are used more than once.
const BESIDE: &str = "Install next to the operator";
const EXCLUDE: &str = "Exclude labelled namespaces from the operator's webhook";
const MOVE: &str = "Move a namespace";
const ROLL_BACK: &str = "Roll back a namespace";

/// The selectors part the two: the way that needs a patch of the operator's configuration.
pub fn parted(_: &Cluster) {
    let mut doc = Doc::read();
    let world = World::start();
    let traffic = Traffic::new(&world.plane, 1, &pod, is_injected_once).dry_run();
    traffic.during(|| move_over(&mut doc, &world, &traffic));
    doc.all_was_run();
}

/// A pod in each namespace in turn.
fn pod(number: usize) -> Value {
    let mut pod = java(&format!("moving-{number}"));
    pod["metadata"]["namespace"] = NAMESPACES[number % NAMESPACES.len()].into();
    pod
}

/// By one of the two, as a whole and once.
fn is_injected_once(pod: &Created) -> bool {
    by(pod).is_some()
}

fn move_over(doc: &mut Doc, world: &World, traffic: &Traffic<'_>) {
    let is_in_effect = |expected| {
        world.until_injected(expected);
        traffic.goes_on();
    };
    let [preview] = &doc.run(world, "Preview")[..] else { panic!("one command") };
    let row = preview.lines().find(|line| line.contains("Deployment/order")).expect("a row");
    let words: Vec<_> = row.split_whitespace().collect();
    let expected = ["shop", "Deployment/order", "1", "java", "operator", "1/1", "app", "by", "shop/default"];
    assert_eq!(words, expected, "{preview}");

    images_are_shown(doc, world);
    let goes_with_release = || check(&world.plane, &[]).codes().contains(&"CrdDeletedWithRelease");
    assert!(goes_with_release(), "the operator's chart has it among its templates");
    doc.run(world, "Keep the CustomResourceDefinition");
    assert!(!goes_with_release(), "no release owns it any more");

    world.register_ours("otel-webhook", &doc.values(BESIDE));
    let [checked] = &doc.run(world, BESIDE)[..] else { panic!("one command") };
    assert!(
        checked.contains(&format!("{OPERATOR}: mpod.kb.io injects, but in other namespaces than this")),
        "{checked}"
    );
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    let [listed] = &doc.run_only(world, EXCLUDE, "kubectl get")[..] else { panic!("one command") };
    let place = |name: &str| listed.find(name).unwrap_or_else(|| panic!("{name} is not listed: {listed}"));
    assert!(place(OPERATOR) < place("otel-webhook"), "not in the order in which they are called: {listed}");
    assert!(listed.contains("mpod.kb.io"), "{listed}");
    doc.run_only(world, EXCLUDE, "kubectl patch");
    world.only_pods_are_parted();
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    let uids = world.uids("shop");
    doc.run_only(world, MOVE, "kubectl label");
    is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
    assert_eq!(world.uids("shop"), uids, "running pods were touched");
    doc.run_only(world, MOVE, "kubectl rollout");
    until("a restarted Deployment has a pod by the webhook", || {
        world.pods("shop", "order").iter().any(|pod| by(pod) == Some(By::Us)).then_some(())
    });
    let [checked] = &doc.run_only(world, MOVE, "otel-webhook")[..] else { panic!("one command") };
    assert!(
        checked.contains("1 of 1 workloads opt in, and all of their pods run the current agents"),
        "{checked}"
    );

    doc.run(world, ROLL_BACK);
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    doc.run_only(world, MOVE, "kubectl label");
    is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
    let mut values = doc.values(BESIDE);
    values["registration"]["pods"] = Value::Null;
    world.register_ours("otel-webhook", &values);
    world.until_both_are_called();
    doc.run(world, "When every namespace has moved");
    is_in_effect([("shop", By::Us), ("cart", By::Us)]);
    assert!(check(&world.plane, &[]).codes().contains(&"InstrumentationsNotRegistered"));
    doc.run(world, "Uninstall the operator");
    world.register_ours("otel-webhook", &Value::Null);
    world.remove_operator();
    is_in_effect([("shop", By::Us), ("cart", By::Us)]);
    let last = check(&world.plane, &[]);
    assert!(last.codes().contains(&"NoOtherInjector"), "{last:?}");
    assert!(!last.codes().contains(&"InstrumentationsNotRegistered"), "{last:?}");
}

/// Those that are stored, and those that would be by the flags of the document.
fn images_are_shown(doc: &mut Doc, world: &World) {
    let heading = "Carry over the operator's settings";
    let [stored] = &doc.run_only(world, heading, "kubectl")[..] else { panic!("one command") };
    assert!(stored.lines().any(|line| line.starts_with("shop") && line.contains("default")), "{stored}");
    let [defaulted] = &doc.run_only(world, heading, "otel-webhook")[..] else { panic!("one command") };
    let images: Vec<_> = defaulted.lines().filter_map(|line| line.trim().strip_prefix("image: ")).collect();
    let is_mirrored =
        |image: &&str| image.trim_matches('"').starts_with("mirror.example.com/open-telemetry/");
    assert!(images.len() == 7 && images.iter().all(is_mirrored), "{defaulted}");
}

/// The name decides: nothing of the operator's is changed.
pub fn ahead(_: &Cluster) {
    let mut doc = Doc::read();
    let world = World::start();
    let traffic = Traffic::new(&world.plane, 1, &pod, is_injected_once).dry_run();
    traffic.during(|| {
        let is_in_effect = |expected| {
            world.until_injected(expected);
            traffic.goes_on();
        };
        let mut values = doc.values(BESIDE);
        let name = doc.values("Inject before the operator")["registration"]["name"].take();
        let name = name.as_str().expect("a name");
        assert!(name < OPERATOR, "{name} would come after {OPERATOR}");
        world.register_ours(name, &values.take());
        is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);
        doc.run_only(&world, MOVE, "kubectl label");
        is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
        let checked = check(&world.plane, &[]);
        let beside = checked.says("OtherInjectorActive");
        let order = format!("{name} is called before {OPERATOR}");
        assert!(beside.contains(&order) && beside.contains("1 namespace (shop)"), "{beside}");
        doc.run(&world, ROLL_BACK);
        is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);
    });
}

const TEXT: &str = include_str!("../../../docs/guides/migration.md");

/// The document, with the commands of it that were run.
pub struct Doc {
    blocks: Vec<Block>,
    run: BTreeSet<String>,
}

/// A fenced block.
struct Block {
    heading: &'static str,
    language: &'static str,
    text: String,
}

impl Doc {
    pub fn read() -> Self {
        let (mut blocks, mut heading, mut open) = (Vec::new(), "", None::<Block>);
        for line in TEXT.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (Some(block), None) => block.text.extend([line, "\n"]),
                (None, Some(language)) => open = Some(Block { heading, language, text: String::new() }),
                (None, None) => heading = line.strip_prefix("## ").unwrap_or(heading),
            }
        }
        Self { blocks, run: BTreeSet::new() }
    }

    /// The values for the chart under a heading.
    pub fn values(&self, heading: &str) -> Value {
        let block = self.blocks.iter().find(|block| block.heading == heading && block.language == "yaml");
        let block = block.unwrap_or_else(|| panic!("there are no values under {heading:?}"));
        serde_saphyr::from_str(&block.text).expect("YAML")
    }

    /// Runs the commands under a heading that need no helm. Gives what each printed.
    pub fn run(&mut self, world: &World, heading: &str) -> Vec<String> {
        self.run_only(world, heading, "")
    }

    /// Those alone that begin with these words.
    pub fn run_only(&mut self, world: &World, heading: &str, words: &str) -> Vec<String> {
        let own = self.blocks.iter().filter(|block| block.heading == heading);
        let commands: Vec<String> =
            own.flat_map(Block::commands).filter(|one| one.starts_with(words)).collect();
        assert!(!commands.is_empty(), "there are no commands under {heading:?}");
        let outputs = commands.iter().map(|command| world.shell(command)).collect();
        self.run.extend(commands);
        outputs
    }

    /// Panics with a command that no test has run.
    pub fn all_was_run(&self) {
        let all: BTreeSet<String> = self.blocks.iter().flat_map(Block::commands).collect();
        let left: Vec<_> = all.difference(&self.run).collect();
        assert!(left.is_empty(), "not run: {left:?}");
    }
}

impl Block {
    /// What stands behind each prompt, with the lines that follow it; helm's are tried elsewhere.
    fn commands(&self) -> Vec<String> {
        let text = if self.language == "console" { &*self.text } else { "" };
        let commands = text.split("\n$ ").map(|part| part.strip_prefix("$ ").unwrap_or(part));
        let commands = commands.map(|one| one.trim_end().to_owned());
        commands.filter(|one| !one.is_empty() && !one.starts_with("helm ")).collect()
    }
}
