//! Moving over from the operator, by the very commands of docs/migration.md,
//! with pods created all the while.
//!
//! Another instance of the program stands for the operator, told to do as it
//! does; what it injects has no stamp.

mod doc;
mod traffic;
mod world;

use serde_json::Value;

use crate::cases::check::check;
use crate::cluster::{Cluster, LIMIT};
use crate::control_plane::until;
use doc::Doc;
use traffic::{By, Traffic, by};
use world::{OPERATOR, World};

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
    let [preview] = &doc.run(world, "Look")[..] else { panic!("one command") };
    let row = preview.lines().find(|line| line.contains("Deployment/order")).expect("a row");
    let words: Vec<_> = row.split_whitespace().collect();
    let expected =
        ["shop", "Deployment/order", "1", "java", "operator", "1/1", "app", "by", "shop/default", "D23"];
    assert_eq!(words, expected, "{preview}");

    world.register_ours("otel-webhook", &doc.values("Install beside the operator"));
    let [checked] = &doc.run(world, "Install beside the operator")[..] else { panic!("one command") };
    assert!(
        checked.contains(&format!("{OPERATOR}: mpod.kb.io injects, but nowhere where this")),
        "{checked}"
    );
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    doc.run(world, "Have the operator leave labelled namespaces alone");
    world.only_pods_are_parted();
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    let uids = world.uids("shop");
    doc.run_only(world, "Move a namespace", "kubectl label");
    is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
    assert_eq!(world.uids("shop"), uids, "running pods were touched");
    doc.run_only(world, "Move a namespace", "kubectl rollout");
    until("a restarted Deployment has a pod by the webhook", LIMIT, || {
        world.pods("shop", "order").iter().any(|pod| by(pod) == Some(By::Us)).then_some(())
    });
    let [checked] = &doc.run_only(world, "Move a namespace", "otel-webhook")[..] else {
        panic!("one command")
    };
    assert!(checked.contains("1 of 1 workloads ask for injection, and none of them in vain"), "{checked}");

    doc.run(world, "Go back");
    is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);

    doc.run_only(world, "Move a namespace", "kubectl label");
    is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
    let mut values = doc.values("Install beside the operator");
    values["registration"]["pods"] = Value::Null;
    world.register_ours("otel-webhook", &values);
    world.until_both_are_called();
    doc.run(world, "When every namespace has moved");
    is_in_effect([("shop", By::Us), ("cart", By::Us)]);
    assert!(check(&world.plane, &[]).codes().contains(&"InstrumentationsNotRegistered"));
    doc.run(world, "Take the operator away");
    world.register_ours("otel-webhook", &Value::Null);
    world.remove_operator();
    is_in_effect([("shop", By::Us), ("cart", By::Us)]);
    let last = check(&world.plane, &[]);
    assert!(last.codes().contains(&"NoOtherInjector"), "{last:?}");
    assert!(!last.codes().contains(&"InstrumentationsNotRegistered"), "{last:?}");
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
        let mut values = doc.values("Install beside the operator");
        let name = doc.values("Ahead of the operator")["registration"]["name"].take();
        let name = name.as_str().expect("a name");
        assert!(name < OPERATOR, "{name} would come after {OPERATOR}");
        world.register_ours(name, &values.take());
        is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);
        doc.run_only(&world, "Move a namespace", "kubectl label");
        is_in_effect([("shop", By::Us), ("cart", By::Operator)]);
        let checked = check(&world.plane, &[]);
        let beside = checked.says("OtherInjectorBeside");
        let order = format!("{name} is called before {OPERATOR}");
        assert!(beside.contains(&order) && beside.contains("1 namespace (shop)"), "{beside}");
        doc.run(&world, "Go back");
        is_in_effect([("shop", By::Operator), ("cart", By::Operator)]);
        drop(ended);
        let strays = creating.join().expect("no panic");
        assert!(strays.is_empty(), "of {} pods: {strays:?}", traffic.count());
    });
}
