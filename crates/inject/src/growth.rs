//! How large injection may make a pod (D33).
//!
//! Variables are added to every container, so a large Instrumentation in many containers makes a pod that
//! the API server or etcd does not take. The sizes are estimates: the lengths of names and values, without
//! escapes.
//!
//! This is the budget of work as well: all that a language does for a container is proportional to what the
//! container has and to what it gets, and a language stops at the first container that is too much.

use std::fmt;

/// The maximum size of a pod with what is added, in bytes: etcd takes requests of 1.5 MiB.
pub const MAX_POD_SIZE: usize = 1536 * 1024;

/// So many bytes are added to any pod.
const FREE: usize = 256 * 1024;

/// Beyond that, so many times the pod itself.
const TIMES: usize = 4;

/// How much may be added to a pod.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The size of the original pod, in bytes.
    pub pod: usize,
    /// The maximum size of the pod with what is added, in bytes.
    pub most: usize,
}

/// Why that much is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// The pod would be too large.
    Size(Sizes),
    /// Many times the pod would be added.
    Ratio(Sizes),
}

/// The size of the pod and what it may grow to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The original pod.
    pub pod: usize,
    /// The maximum, of the pod or of what is added.
    pub most: usize,
}

impl Growth {
    /// Checks that so much may be added.
    ///
    /// # Errors
    /// The exceeded maximum.
    pub fn check(&self, added: usize) -> Result<(), Excess> {
        let Self { pod, most } = *self;
        if added > 0 && pod.saturating_add(added) > most {
            return Err(Excess::Size(Sizes { pod, most }));
        }
        let allowed = pod.saturating_mul(TIMES).max(FREE);
        if added > allowed {
            return Err(Excess::Ratio(Sizes { pod, most: allowed }));
        }
        Ok(())
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(Sizes { pod, most }) => write!(
                f,
                "the pod has {}Ki, and would have more than {}Ki (--max-pod-size)",
                kibibytes(*pod),
                kibibytes(*most)
            ),
            Self::Ratio(Sizes { pod, most }) => write!(
                f,
                "the pod has {}Ki, and more than {}Ki would be added; the maximum is {TIMES} times the pod, or {}Ki",
                kibibytes(*pod),
                kibibytes(*most),
                kibibytes(FREE)
            ),
        }
    }
}

fn kibibytes(bytes: usize) -> usize {
    bytes.div_ceil(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_may_grow_to_the_maximum_and_by_four_times_its_size() {
        let check = |pod, added| Growth { pod, most: MAX_POD_SIZE }.check(added).err();
        let size = |pod| Some(Excess::Size(Sizes { pod, most: MAX_POD_SIZE }));
        let ratio = |pod, most| Some(Excess::Ratio(Sizes { pod, most }));
        assert_eq!(check(4096, FREE), None);
        assert_eq!(check(4096, FREE + 1), ratio(4096, FREE));
        assert_eq!(check(100_000, 400_000), None);
        assert_eq!(check(100_000, 400_001), ratio(100_000, 400_000));
        assert_eq!(check(MAX_POD_SIZE - 10, 10), None);
        assert_eq!(check(MAX_POD_SIZE - 10, 11), size(MAX_POD_SIZE - 10));
        assert_eq!(check(2 * MAX_POD_SIZE, 0), None, "nothing is added");
    }
}
