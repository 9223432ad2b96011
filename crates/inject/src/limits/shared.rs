//! Equal items of LimitRanges, stored once: namespaces are usually
//! created from a few templates.

use std::sync::{Arc, Weak};

use super::{limit::Limit, limit_range::LimitItem};

/// The maximum number of different lists that are compared, so that a cluster in
/// which all differ needs only more memory.
const MOST: usize = 64;

/// The lists of items in use.
#[derive(Debug, Default)]
pub struct SharedItems(Vec<Weak<[LimitItem]>>);

impl SharedItems {
    /// The same object, with equal items that are already in use, if any.
    #[must_use]
    pub fn share(&mut self, limit: Limit) -> Limit {
        let Limit::Range(mut range) = limit else {
            return limit;
        };
        if let Some(known) = self.0.iter().filter_map(Weak::upgrade).find(|known| *known == range.items) {
            range.items = known;
        } else {
            self.0.retain(|items| items.strong_count() > 0);
            if self.0.len() < MOST {
                self.0.push(Arc::downgrade(&range.items));
            }
        }
        Limit::Range(range)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::limits::LimitKind;

    fn items(shared: &mut SharedItems, most: usize) -> Arc<[LimitItem]> {
        let spec = json!({"limits": [{"type": "Pod", "max": {"cpu": most}}]});
        let limit = Limit::read(LimitKind::Range, &json!({"spec": spec}), &mut Vec::new());
        match shared.share(limit) {
            Limit::Range(range) => range.items,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_items_are_stored_once_and_unused_ones_are_removed() {
        let mut shared = SharedItems::default();
        let one = items(&mut shared, 1);
        assert!(Arc::ptr_eq(&one, &items(&mut shared, 1)));
        assert!(!Arc::ptr_eq(&one, &items(&mut shared, 2)));
        for most in 0..1000 {
            drop(items(&mut shared, most));
        }
        assert!(shared.0.len() <= 2, "{}", shared.0.len());
        let held: Vec<_> = (0..1000).map(|most| items(&mut shared, most)).collect();
        assert_eq!((held.len(), shared.0.len()), (1000, MOST));
        assert!(Arc::ptr_eq(&one, &items(&mut shared, 1)));
    }
}
