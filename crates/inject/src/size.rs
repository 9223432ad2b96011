//! How large Instrumentations may be.

use serde_json::Value;

use otel_webhook_api::quantity::Quantity;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How large Instrumentations may be, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// The JSON of the specification of one, which is copied into every container.
    pub one: u64,
    /// The memory for all, in their compiled form.
    pub all: u64,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self { one: 128 * KIB, all: 16 * MIB }
    }
}

impl SizeLimits {
    /// Parses a size.
    ///
    /// # Errors
    /// A message that says what is valid.
    pub fn parse(text: &str) -> Result<u64, String> {
        let size = Quantity::parse(text).and_then(Quantity::whole).and_then(|size| u64::try_from(size).ok());
        size.filter(|size| *size > 0)
            .ok_or_else(|| format!("\"{text}\" is not a size; valid: a quantity above zero, such as 128Ki"))
    }

    /// Checks the size of one Instrumentation.
    ///
    /// # Errors
    /// Why its specification cannot be used.
    pub fn check_one(self, size: u64) -> Result<(), String> {
        if size <= self.one {
            return Ok(());
        }
        let (size, most) = (shown(size), shown(self.one));
        Err(format!("its JSON has {size}, and the maximum is {most} (--max-instrumentation-size)"))
    }

    /// Why an Instrumentation that exceeds the share of its namespace is not used.
    pub fn exceeded(self) -> String {
        format!(
            "spec: the Instrumentations of its namespace need more memory than their share of {} (--max-instrumentations-total), \
             and the oldest are used first; remove or shorten some of them",
            shown(self.all)
        )
    }
}

/// The size of an Instrumentation's specification.
pub fn size_of(object: &Value) -> u64 {
    object.get("spec").map_or(0, |spec| spec.to_string().len() as u64)
}

/// A size as a quantity: exactly if it is a whole number of a unit, else with one digit, rounded up.
pub fn shown(size: u64) -> String {
    let (unit, suffix) = if size >= MIB { (MIB, "Mi") } else { (KIB, "Ki") };
    if size < KIB {
        return size.to_string();
    }
    let tenths = size.saturating_mul(10).div_ceil(unit);
    match tenths % 10 {
        0 => format!("{}{suffix}", tenths / 10),
        digit => format!("{}.{digit}{suffix}", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_is_that_of_the_specification() {
        let object = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"a": [1, "\n"]}, "status": {}});
        assert_eq!(size_of(&object), r#"{"a":[1,"\n"]}"#.len() as u64);
        assert_eq!(size_of(&json!({})), 0);
    }

    #[test]
    fn a_problem_has_the_size_and_the_maximum() {
        let limits = SizeLimits::default();
        assert_eq!(limits.check_one(128 * KIB), Ok(()));
        assert_eq!(
            limits.check_one(128 * KIB + 1),
            Err("its JSON has 128.1Ki, and the maximum is 128Ki (--max-instrumentation-size)".to_owned())
        );
        let problem = limits.exceeded();
        assert!(problem.contains(" share of 16Mi (--max-instrumentations-total)"), "{problem}");
        assert_eq!([shown(1_363_148), shown(1_000)], ["1.3Mi", "1000"]);
    }

    #[test]
    fn sizes_are_quantities_above_zero() {
        assert_eq!(SizeLimits::parse("128Ki"), Ok(128 * KIB));
        assert_eq!(SizeLimits::parse("1.5Mi"), Ok(3 * MIB / 2));
        for text in ["", "0", "-1", "128KB", "many", "1e40"] {
            let problem = SizeLimits::parse(text).expect_err(text);
            assert_eq!(
                problem,
                format!("\"{text}\" is not a size; valid: a quantity above zero, such as 128Ki")
            );
        }
    }
}
