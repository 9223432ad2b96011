//! Quantities, as far as one has to be compared with another.

use serde_json::{Number, Value};

/// A quantity in billionths; the smallest step that Kubernetes knows. What is
/// beyond all measure is the largest number there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

/// Digits after the point that can matter: the smallest binary unit times a
/// billionth needs no more.
const FRACTION: usize = 18;

impl Quantity {
    /// Reads text or a whole number. None for what is no quantity.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Some(Self(i128::from(whole(number)?).saturating_mul(1_000_000_000))),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('+').unwrap_or(text);
        let end = unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let fraction = &fraction[..fraction.len().min(FRACTION)];
        let mantissa = whole
            .bytes()
            .chain(fraction.bytes())
            .fold(0_i128, |sum, digit| sum.saturating_mul(10).saturating_add(i128::from(digit - b'0')));
        let (factor, exponent) = unit(suffix)?;
        let places = exponent.saturating_add(9).saturating_sub(i32::try_from(fraction.len()).ok()?);
        let value = mantissa.saturating_mul(factor);
        let power = 10_i128.checked_pow(places.unsigned_abs());
        Some(Self(match power {
            Some(power) if places >= 0 => value.saturating_mul(power),
            // Kubernetes rounds up to the next step.
            Some(power) => (value / power).saturating_add(i128::from(value % power != 0)),
            None if places >= 0 && value != 0 => i128::MAX,
            None => i128::from(value != 0),
        }))
    }
}

/// The whole number that is meant; YAML has `1e3` and `1.0` as floating-point
/// numbers, and `kubectl` sends them as whole ones.
pub fn whole(number: &Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation, reason = "a whole number below the bound is exact")]
    let from_float = |float: f64| (float.fract() == 0.0 && float.abs() < EXACT).then_some(float as i64);
    number.as_i64().or_else(|| number.as_f64().and_then(from_float))
}

/// The factor and the power of ten that a suffix stands for.
fn unit(suffix: &str) -> Option<(i128, i32)> {
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const DECIMAL: [(&str, i32); 10] = [
        ("", 0),
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    if let Some(power) = BINARY.iter().position(|binary| *binary == suffix) {
        return Some((1 << (10 * (power + 1)), 0));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(decimal, _)| *decimal == suffix) {
        return Some((1, *exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((1, exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_compare_by_what_they_are_worth() {
        let equal = [
            [json!("0.5"), json!("500m")],
            [json!(1), json!("1000m")],
            [json!(1000.0), json!("1k")],
            [json!("1Ki"), json!(1024)],
            [json!("1.5Gi"), json!("1536Mi")],
            [json!("1e3"), json!("1k")],
            [json!("1E"), json!("1e18")],
            [json!("+.5"), json!("5e-1")],
            [json!("0"), json!("0n")],
            [json!("1."), json!(1)],
            [json!("0.1n"), json!("1n")],
            [json!("1e99"), json!("9e80")],
            [json!("1e-99"), json!("1n")],
        ];
        for [one, other] in &equal {
            assert_eq!(Quantity::read(one), Quantity::read(other), "{one} {other}");
        }
        for [less, more] in [["64Mi", "65Mi"], ["1001m", "1.002"], ["1M", "1Mi"], ["999n", "1u"]] {
            assert!(Quantity::parse(less) < Quantity::parse(more), "{less} {more}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_none() {
        for text in ["", ".", "lots", "1.2.3", "1 Gi", "1gi", "e3", "-1", "1e", "1e1.5", "1e99999999999"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }
}
