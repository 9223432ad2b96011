//! Which of two versions of an object is the older one.

/// Whether a `resourceVersion` is certainly older than another. They count up: since Kubernetes 1.35 by
/// contract, and before that in fact. Of others nothing is known.
pub fn is_older(own: &str, other: &str) -> bool {
    matches!((own.parse::<u64>(), other.parse::<u64>()), (Ok(own), Ok(other)) if own < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert!(is_older("9", "10"));
        assert!(!is_older("10", "10"));
        assert!(!is_older("", "10"));
    }
}
