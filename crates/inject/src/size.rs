//! How large Instrumentations may be.

use serde_json::Value;

use otel_webhook_api::quantity::Quantity;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How large Instrumentations may be, in bytes of the JSON of their specifications. What is compiled of one is
/// some times as large, and copied into every container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimits {
    /// One.
    pub one: u64,
    /// All together.
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

    /// Checks the size of an Instrumentation beside others.
    ///
    /// # Errors
    /// Why its specification cannot be used.
    pub fn check(self, size: u64, others: u64) -> Result<(), String> {
        self.check_one(size)?;
        if size <= self.all.saturating_sub(others) {
            return Ok(());
        }
        let (size, others, most) = (shown(size), shown(others), shown(self.all));
        Err(format!(
            "its JSON has {size}, that of the other Instrumentations has {others}, and the maximum of all is {most} \
             (--max-instrumentations-total); remove what is not needed, then change this Instrumentation"
        ))
    }
}

/// The size of an Instrumentation's specification.
pub fn size_of(object: &Value) -> u64 {
    object.get("spec").map_or(0, |spec| spec.to_string().len() as u64)
}

/// A size as a quantity: exactly if it is a whole number of a unit, else with one digit, rounded up.
fn shown(size: u64) -> String {
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
        assert_eq!(limits.check(128 * KIB, 16 * MIB - 128 * KIB), Ok(()));
        assert_eq!(
            limits.check(128 * KIB + 1, 0),
            Err("its JSON has 128.1Ki, and the maximum is 128Ki (--max-instrumentation-size)".to_owned())
        );
        let problem = limits.check(2 * KIB, 16 * MIB - 2 * KIB + 1).expect_err("too much");
        let expected = "its JSON has 2Ki, that of the other Instrumentations has 16Mi, and the maximum of all is \
                        16Mi (--max-instrumentations-total); remove ";
        assert!(problem.starts_with(expected), "{problem}");
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
