//! Which Instrumentations are used: the memory of all is bounded, and their namespaces share it.
//!
//! The shares are max-min fair: a namespace that needs less than an equal share gets all that it needs, and the others
//! share the rest equally. Reserved namespaces come first, with up to half of the memory. In a namespace, the oldest are
//! used, up to the first that exceeds the share. All of this follows from the objects, in any order of arrival, so that
//! each replica of the webhook and of the controller comes to the same result.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde_json::Value;

use otel_webhook_inject::{reason::ObjectName, size::SizeLimits};

/// How many of a namespace that exceed its share are remembered, to report them. Others do not exist for the store until
/// there is memory for them.
const REMEMBERED: usize = 100;

/// The order in a namespace: by `creationTimestamp`, then UID. Objects of files have neither.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    created: Box<str>,
    uid: Box<str>,
    name: Box<str>,
}

/// The memory that Instrumentations are charged for.
#[derive(Debug, Default)]
pub struct Budget {
    limits: SizeLimits,
    reserved: BTreeSet<Box<str>>,
    namespaces: BTreeMap<Box<str>, Tenant>,
}

/// A namespace.
#[derive(Debug, Default)]
struct Tenant {
    by_age: BTreeMap<Arc<Age>, Entry>,
    by_name: HashMap<Box<str>, Arc<Age>>,
    /// The sum of all charges.
    needs: u64,
    /// The sum of those of used ones.
    used: u64,
    /// Whether there are more than are remembered.
    has_others: bool,
}

#[derive(Debug)]
struct Entry {
    charge: u64,
    is_used: bool,
    is_too_large: bool,
}

/// An Instrumentation that exceeds the share of its namespace.
#[derive(Debug, PartialEq, Eq)]
pub struct Exceeding {
    /// Its name.
    pub name: ObjectName,
    /// Whether it is remembered.
    pub is_remembered: bool,
}

/// The memory for each namespace, in bytes.
struct Shares {
    reserved: u64,
    other: u64,
}

impl Age {
    /// Reads an object.
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().into();
        Self { created: text("creationTimestamp"), uid: text("uid"), name: text("name") }
    }
}

impl Budget {
    /// Returns an empty budget.
    pub fn new(limits: SizeLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the limits.
    pub fn limits(&self) -> SizeLimits {
        self.limits
    }

    /// Reserves up to half of the memory for this namespace and others that are reserved.
    pub fn reserve(&mut self, namespace: &str) {
        self.reserved.insert(namespace.into());
    }

    /// Counts an Instrumentation that is new, has changed, or is compiled again. Returns those that exceed a share now
    /// and did not before; it may be one of them.
    pub fn put(&mut self, namespace: &str, age: Age, charge: u64, is_too_large: bool) -> Vec<Exceeding> {
        let tenant = self.namespaces.entry(namespace.into()).or_default();
        tenant.forget(&age.name);
        let age = Arc::new(age);
        tenant.by_name.insert(age.name.clone(), Arc::clone(&age));
        tenant.by_age.insert(age, Entry { charge, is_used: true, is_too_large });
        tenant.needs += charge;
        tenant.used += charge;
        let shares = self.shares();
        let Self { namespaces, reserved, .. } = self;
        let may_exceed = namespaces.iter_mut().filter_map(|(name, tenant)| {
            let share = shares.of(reserved.contains(name));
            (tenant.used > share || **name == *namespace).then_some((name, tenant, share))
        });
        may_exceed.flat_map(|(name, tenant, share)| tenant.settle(name, share)).collect()
    }

    /// Removes an Instrumentation.
    pub fn forget(&mut self, name: &ObjectName) {
        if let Some(tenant) = self.namespaces.get_mut(&name.namespace) {
            tenant.forget(&name.name);
        }
        self.namespaces.retain(|_, tenant| !tenant.by_age.is_empty() || tenant.has_others);
    }

    /// Removes those that are not selected, by namespace and name.
    pub fn retain(&mut self, keep: impl Fn(&str, &str) -> bool) {
        for (namespace, tenant) in &mut self.namespaces {
            let gone: Vec<_> = tenant.by_name.keys().filter(|name| !keep(namespace, name)).cloned().collect();
            for name in gone {
                tenant.forget(&name);
            }
        }
        self.namespaces.retain(|_, tenant| !tenant.by_age.is_empty());
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.namespaces.clear();
    }

    /// Returns how many are not used, of those that are remembered.
    pub fn too_large(&self) -> usize {
        let entries = self.namespaces.values().flat_map(|tenant| tenant.by_age.values());
        entries.filter(|entry| !entry.is_used || entry.is_too_large).count()
    }

    /// Returns the charges of a namespace, the largest first.
    pub fn charges(&self, namespace: &str) -> Vec<(&str, u64)> {
        let entries = self.namespaces.get(namespace).into_iter().flat_map(|tenant| &tenant.by_age);
        let mut charges: Vec<_> = entries.map(|(age, entry)| (&*age.name, entry.charge)).collect();
        charges.sort_by_key(|(name, charge)| (std::cmp::Reverse(*charge), *name));
        charges
    }

    /// Returns whether there is memory for Instrumentations that are not compiled. They have to be read again.
    pub fn has_room_for_unused(&mut self) -> bool {
        let shares = self.shares();
        let Self { namespaces, reserved, .. } = self;
        let mut has_room = false;
        for (name, tenant) in namespaces {
            let share = shares.of(reserved.contains(name));
            has_room |= tenant.within(share).any(|entry| !entry.is_used);
            has_room |= tenant.needs <= share && std::mem::take(&mut tenant.has_others);
        }
        has_room
    }

    fn shares(&self) -> Shares {
        let needs = |is_reserved: bool| {
            let tenants = self.namespaces.iter();
            let tenants = tenants.filter(move |(name, _)| self.reserved.contains(*name) == is_reserved);
            tenants.map(|(_, tenant)| tenant.needs)
        };
        let reserved = equal_share(needs(true), self.limits.all / 2);
        let served: u64 = needs(true).map(|needs| needs.min(reserved)).sum();
        Shares { reserved, other: equal_share(needs(false), self.limits.all - served) }
    }
}

impl Shares {
    fn of(&self, is_reserved: bool) -> u64 {
        if is_reserved { self.reserved } else { self.other }
    }
}

impl Tenant {
    fn forget(&mut self, name: &str) {
        let entry = self.by_name.remove(name).and_then(|age| self.by_age.remove(&age));
        if let Some(Entry { charge, is_used, .. }) = entry {
            self.needs -= charge;
            self.used -= if is_used { charge } else { 0 };
        }
    }

    /// The oldest, up to the first that exceeds a share.
    fn within(&self, share: u64) -> impl Iterator<Item = &Entry> {
        let sums = self.by_age.values().scan(0, |sum, entry| {
            *sum += entry.charge;
            Some((*sum, entry))
        });
        sums.take_while(move |(sum, _)| *sum <= share).map(|(_, entry)| entry)
    }

    /// Returns those that exceed a share and are used.
    fn settle(&mut self, namespace: &str, share: u64) -> Vec<Exceeding> {
        let kept = self.within(share).count();
        let mut exceeding = Vec::new();
        let mut forgotten = Vec::new();
        for (place, (age, entry)) in self.by_age.iter_mut().enumerate().skip(kept) {
            let is_remembered = place - kept < REMEMBERED;
            if std::mem::take(&mut entry.is_used) {
                self.used -= entry.charge;
            } else if is_remembered {
                continue;
            }
            let name = ObjectName { namespace: namespace.into(), name: age.name.clone() };
            exceeding.push(Exceeding { name, is_remembered });
            if !is_remembered {
                forgotten.push(Arc::clone(age));
            }
        }
        for age in forgotten {
            self.forget(&age.name);
            self.has_others = true;
        }
        exceeding
    }
}

/// Returns the largest share at which all needs, each up to it, fit into the room; the maximum if all fit completely.
fn equal_share(needs: impl Iterator<Item = u64>, mut room: u64) -> u64 {
    let mut needs: Vec<u64> = needs.collect();
    needs.sort_unstable();
    for (place, need) in needs.iter().enumerate() {
        let share = room / (needs.len() - place) as u64;
        if *need > share {
            return share;
        }
        room -= need;
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::Index};

    use otel_webhook_api::defaults::DefaultImages;
    use serde_json::json;

    use super::*;
    use crate::Writer;

    const LIMITS: SizeLimits = SizeLimits { one: 100, all: 100 };

    /// Namespace, name and charge of an Instrumentation. Its name is its age.
    type One = (u8, u8, u64);

    fn budget(reserved: u8) -> Budget {
        let mut budget = Budget::new(LIMITS);
        (0..reserved).for_each(|namespace| budget.reserve(&namespace.to_string()));
        budget
    }

    fn put(budget: &mut Budget, (namespace, name, charge): One) -> Vec<Exceeding> {
        let name: Box<str> = format!("{name:03}").into();
        budget.put(&namespace.to_string(), Age { created: "".into(), uid: "".into(), name }, charge, false)
    }

    fn put_all(budget: &mut Budget, ones: &[One]) {
        for one in ones {
            put(budget, *one);
        }
    }

    fn used(budget: &Budget) -> BTreeMap<(&str, &str), u64> {
        let tenants = budget.namespaces.iter();
        let all =
            tenants.flat_map(|(namespace, tenant)| tenant.by_age.iter().map(move |one| (namespace, one)));
        let used = all.filter(|(_, (_, entry))| entry.is_used);
        used.map(|(namespace, (age, entry))| ((&**namespace, &*age.name), entry.charge)).collect()
    }

    fn names(exceeding: &[Exceeding]) -> Vec<String> {
        exceeding.iter().map(|one| one.name.to_string()).collect()
    }

    #[test]
    fn an_equal_share_leaves_nothing_that_is_needed() {
        for (needs, room, share) in [
            (vec![], 100, u64::MAX),
            (vec![10, 20, 70], 100, u64::MAX),
            (vec![10, 20, 71], 100, 70),
            (vec![90, 5, 90], 100, 47),
            (vec![90, 90, 90], 100, 33),
        ] {
            assert_eq!(equal_share(needs.clone().into_iter(), room), share, "{needs:?}");
        }
    }

    #[test]
    fn the_oldest_of_the_namespace_with_too_many_are_used() {
        let mut budget = budget(0);
        assert!(put(&mut budget, (1, 2, 60)).is_empty());
        assert_eq!(names(&put(&mut budget, (1, 3, 50))), ["1/003"]);
        assert_eq!(names(&put(&mut budget, (1, 4, 10))), ["1/004"], "an older one was skipped");
        assert_eq!(names(&put(&mut budget, (2, 1, 50))), ["1/002"], "half belongs to the other namespace");
        assert_eq!((used(&budget).len(), budget.too_large()), (1, 3));
        assert!(!budget.has_room_for_unused());
        budget.forget(&ObjectName { namespace: "2".into(), name: "001".into() });
        assert!(budget.has_room_for_unused());
        assert_eq!(names(&put(&mut budget, (1, 2, 60))), Vec::<String>::new());
        assert!(!budget.has_room_for_unused());
        assert_eq!(budget.charges("1"), [("002", 60), ("003", 50), ("004", 10)]);
        budget.retain(|_, name| name == "003");
        assert!(budget.has_room_for_unused() && budget.too_large() == 1);
        budget.clear();
        assert_eq!((budget.too_large(), budget.limits), (0, LIMITS));
    }

    #[test]
    fn few_of_those_that_are_not_used_are_remembered() {
        let mut budget = budget(0);
        let exceeding: Vec<_> = (0..200).rev().flat_map(|name| put(&mut budget, (1, name, 10))).collect();
        let forgotten = exceeding.iter().filter(|one| !one.is_remembered).count();
        assert_eq!((used(&budget).len(), budget.too_large(), forgotten), (10, REMEMBERED, 90));
        (0..200).for_each(|name| drop(put(&mut budget, (1, name, 10))));
        (0..110).for_each(|name| {
            budget.forget(&ObjectName { namespace: "1".into(), name: format!("{name:03}").into() });
        });
        assert!(budget.has_room_for_unused(), "there are more than were remembered");
        assert!(!budget.has_room_for_unused(), "it is asked for once");
    }

    #[test]
    fn the_charge_is_what_a_store_holds() {
        const COUNT: usize = 2000;
        let own = |number: usize| json!({"java": {"env": [{"name": "A", "value": number.to_string()}]}});
        for spec in [own, |_| json!({})] {
            let (mut writer, mut charged) = (Writer::new(DefaultImages::default()), 0);
            // What is made once in a process, such as the schema.
            writer.put_instrumentation(&json!({"metadata": {"namespace": "n", "name": "first"}}), 0);
            let counted = allocation_counter::measure(|| {
                for number in 0..COUNT {
                    let metadata = json!({
                        "namespace": format!("shop-{}", number / 100), "name": format!("order-{number}"),
                        "uid": "12345678-1234-1234-1234-123456789012", "creationTimestamp": "2026-01-01T00:00:00Z",
                    });
                    writer.put_instrumentation(&json!({"metadata": metadata, "spec": spec(number)}), 0);
                }
                writer.publish();
            });
            for namespace in writer.budget.namespaces.values().filter(|tenant| tenant.by_age.len() > 1) {
                charged += usize::try_from(namespace.needs).expect("little");
            }
            let counted = usize::try_from(counted.bytes_current).expect("it holds memory");
            assert!(charged * 4 <= counted * 5 && counted * 4 <= charged * 5, "{charged} of {counted}");
        }
    }

    /// The shares by their definition: everyone gets one more at a time, while there is something to give.
    fn reference(ones: &[One], reserved: u8) -> BTreeMap<u8, u64> {
        let mut needs: BTreeMap<u8, u64> = BTreeMap::new();
        for (namespace, _, charge) in ones {
            *needs.entry(*namespace).or_default() += charge;
        }
        let mut shares: BTreeMap<u8, u64> = BTreeMap::new();
        let mut give = |is_reserved: bool, room: u64| {
            let mut left = room;
            loop {
                let hungry: Vec<u8> = needs
                    .iter()
                    .filter(|(namespace, needs)| {
                        (**namespace < reserved) == is_reserved
                            && shares.get(namespace).copied().unwrap_or_default() < **needs
                    })
                    .map(|(namespace, _)| *namespace)
                    .collect();
                if hungry.is_empty() || left < hungry.len() as u64 {
                    return room - left;
                }
                left -= hungry.len() as u64;
                for namespace in hungry {
                    *shares.entry(namespace).or_default() += 1;
                }
            }
        };
        let served = give(true, LIMITS.all / 2);
        give(false, LIMITS.all - served);
        shares
    }

    proptest! {
        #[test]
        fn the_result_depends_on_the_objects_alone(
            ones in vec((0..6_u8, 0..9_u8, 1..60_u64), 0..40), reserved in 0..3_u8, order in any::<Vec<Index>>(),
            changed in vec((0..6_u8, 0..9_u8, 1..60_u64), 0..10),
        ) {
            let last: BTreeMap<(u8, u8), u64> =
                ones.iter().map(|(namespace, name, charge)| ((*namespace, *name), *charge)).collect();
            let ones: Vec<One> = last.into_iter().map(|((namespace, name), charge)| (namespace, name, charge)).collect();
            let mut in_order = budget(reserved);
            put_all(&mut in_order, &ones);

            let mut shuffled = ones.clone();
            for (place, index) in order.iter().enumerate().take(ones.len()) {
                let other = index.index(ones.len());
                shuffled.swap(place, other);
            }
            let mut other = budget(reserved);
            put_all(&mut other, &changed);
            put_all(&mut other, &shuffled);
            other.retain(|namespace, name| {
                ones.iter().any(|one| one.0.to_string() == namespace && format!("{:03}", one.1) == name)
            });
            // What there is room for now is read again.
            while other.has_room_for_unused() {
                put_all(&mut other, &shuffled);
            }
            prop_assert_eq!(used(&in_order), used(&other));

            let shares = reference(&ones, reserved);
            let mut expected = BTreeMap::new();
            let mut sums: BTreeMap<u8, u64> = BTreeMap::new();
            for (namespace, name, charge) in &ones {
                let sum = sums.entry(*namespace).or_default();
                *sum += charge;
                if *sum <= shares[namespace] {
                    expected.insert((namespace.to_string(), format!("{name:03}")), *charge);
                }
            }
            let used: BTreeMap<_, _> = used(&in_order)
                .into_iter()
                .map(|((namespace, name), charge)| ((namespace.to_owned(), name.to_owned()), charge))
                .collect();
            prop_assert!(used.values().sum::<u64>() <= LIMITS.all);
            prop_assert_eq!(used, expected);
        }
    }
}
