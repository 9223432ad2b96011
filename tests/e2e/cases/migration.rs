//! Moving over from the operator, by the very commands of docs/migration.md,
//! with pods created all the while.
//!
//! Another instance of the program stands for the operator, told to do as it
//! does; what it injects has no stamp.

mod doc;
mod traffic;
mod world;

use otel_webhook_testkit::until::until;
use serde_json::Value;

use crate::cases::check::check;
use crate::cluster::{Cluster, LIMIT};
use doc::Doc;
use traffic::{By, Traffic, by};
use world::{OPERATOR, World};

/// Headings of the document that are used more than once.
const BESIDE: &str = "Install beside the operator";
const EXCLUDE: &str = "Exclude labelled namespaces from the operator's webhook";
const MOVE: &str = "Move a namespace";
const ROLL_BACK: &str = "Roll back a namespace";

/// The selectors part the two: the way that needs a patch of the operator's configuration.
pub fn parted(_: &Cluster) {
    let mut doc = Doc::read();
    let world = World::start();
    let traffic = Traffic::new(&world.plane);
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| traffic.run());
        let ended = traffic.ends_on_drop();
        move_over(&mut doc, &world, &traffic);
        drop(ended);
        let strays = creating.join().expect("no panic");
        assert!(strays.is_empty(), "of {} pods: {strays:?}", traffic.count());
    });
    doc.all_was_run();
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
    let goes_with_release = || check(&world.plane, &[]).codes().contains(&"CrdGoesWithRelease");
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
    until("a restarted Deployment has a pod by the webhook", LIMIT, || {
        world.pods("shop", "order").iter().any(|pod| by(pod) == Some(By::Us)).then_some(())
    });
    let [checked] = &doc.run_only(world, MOVE, "otel-webhook")[..] else { panic!("one command") };
    assert!(
        checked.contains("1 of 1 workloads opt in, and all of their pods run with the present agents"),
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
    let traffic = Traffic::new(&world.plane);
    std::thread::scope(|scope| {
        let creating = scope.spawn(|| traffic.run());
        let ended = traffic.ends_on_drop();
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
        let beside = checked.says("OtherInjectorBeside");
        let order = format!("{name} is called before {OPERATOR}");
        assert!(beside.contains(&order) && beside.contains("1 namespace (shop)"), "{beside}");
        doc.run(&world, ROLL_BACK);
        is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);
        drop(ended);
        let strays = creating.join().expect("no panic");
        assert!(strays.is_empty(), "of {} pods: {strays:?}", traffic.count());
    });
}
