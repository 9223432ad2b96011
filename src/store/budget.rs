//! How much of the Instrumentations' JSON is used.

use std::collections::BTreeMap;

use otel_webhook_inject::{reason::ObjectName, size::SizeLimits};

/// The sizes of the Instrumentations. In the order in which they arrive, those that are too large are not used.
#[derive(Debug, Default)]
pub struct Budget {
    limits: SizeLimits,
    /// The size of each; none if it is not used.
    sizes: BTreeMap<ObjectName, Option<u64>>,
    used: u64,
}

impl Budget {
    /// Returns a budget with other limits.
    pub fn new(limits: SizeLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Counts an Instrumentation that is new or has changed.
    ///
    /// # Errors
    /// Why it is too large to be used.
    pub fn take(&mut self, name: &ObjectName, size: u64) -> Result<(), String> {
        self.forget(name);
        let checked = self.limits.check(size, self.used);
        let counted = checked.is_ok().then_some(size);
        self.used += counted.unwrap_or_default();
        self.sizes.insert(name.clone(), counted);
        checked
    }

    /// Removes an Instrumentation.
    pub fn forget(&mut self, name: &ObjectName) {
        self.used -= self.sizes.remove(name).flatten().unwrap_or_default();
    }

    /// Removes those that are not selected.
    pub fn retain(&mut self, keep: impl Fn(&ObjectName) -> bool) {
        self.sizes.retain(|name, _| keep(name));
        self.used = self.sizes.values().flatten().sum();
    }

    /// Removes all.
    pub fn clear(&mut self) {
        *self = Self::new(self.limits);
    }

    /// Returns whether one Instrumentation of this size can be used.
    pub fn fits_one(&self, size: u64) -> bool {
        self.limits.check_one(size).is_ok()
    }

    /// Returns how many are not used.
    pub fn too_large(&self) -> usize {
        self.sizes.values().filter(|size| size.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName { namespace: "shop".into(), name: name.into() }
    }

    #[test]
    fn those_that_arrive_first_are_used() {
        let mut budget = Budget::new(SizeLimits { one: 6, all: 10 });
        let taken =
            [("a", 6), ("b", 7), ("c", 4), ("d", 1)].map(|(of, size)| budget.take(&name(of), size).is_ok());
        assert_eq!(taken, [true, false, true, false]);
        assert_eq!((budget.used, budget.too_large()), (10, 2));

        assert!(budget.take(&name("a"), 5).is_ok(), "its own former size does not count");
        assert!(budget.take(&name("d"), 1).is_ok(), "there is room now");
        assert!(budget.take(&name("d"), 2).is_err());
        assert_eq!((budget.used, budget.too_large()), (9, 2));

        budget.forget(&name("b"));
        budget.retain(|kept| *kept != name("c"));
        assert_eq!((budget.used, budget.too_large()), (5, 1));
        budget.clear();
        assert_eq!((budget.used, budget.too_large(), budget.limits.all), (0, 0, 10));
    }
}
