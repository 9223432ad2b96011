//! Kubernetes quantities, exactly: `100m`, `64Mi`, `1.5`, `2e3`.

use std::fmt;

use serde_json::Value;

/// An amount in units of 10⁻⁹, the precision of Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

const ONE: i128 = 1_000_000_000;

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// The maximum, used as "unlimited".
    pub const MAX: Self = Self(i128::MAX);

    /// One.
    pub const ONE: Self = Self(ONE);

    /// A thousandth, the precision that the API server keeps.
    pub const MILLI: Self = Self(ONE / 1_000);

    /// A number of mebibytes.
    pub const fn mebibytes(count: i128) -> Self {
        Self(count * 1024 * 1024 * ONE)
    }

    /// Reads a quantity, which may be a number or a string; `None` for any other value.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Parses a quantity.
    pub fn parse(text: &str) -> Option<Self> {
        Self::usual(text).or_else(|| Self::any(text))
    }

    /// Parses the common form, a few digits and a unit, without a division.
    fn usual(text: &str) -> Option<Self> {
        const MOST_DIGITS: usize = 9;
        let length = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        let (digits, suffix) =
            text.split_at_checked(length).filter(|_| (1..=MOST_DIGITS).contains(&length))?;
        let unit = match suffix {
            "" => ONE,
            "m" => ONE / 1_000,
            "Ki" => ONE << 10,
            "Mi" => ONE << 20,
            "Gi" => ONE << 30,
            _ => return None,
        };
        let count = digits.bytes().fold(0_u32, |count, digit| count * 10 + u32::from(digit - b'0'));
        Some(Self(i128::from(count) * unit))
    }

    fn any(text: &str) -> Option<Self> {
        let digits_end =
            text.find(|letter: char| !matches!(letter, '0'..='9' | '.' | '+' | '-')).unwrap_or(text.len());
        let (number, suffix) = text.split_at(digits_end);
        let (numerator, denominator) = scale(suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let negative = whole.starts_with('-');
        let whole = whole.strip_prefix(['-', '+']).unwrap_or(whole);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let digits = whole.bytes().chain(fraction.bytes()).try_fold(0_i128, |digits, byte| {
            let digit = byte.is_ascii_digit().then(|| i128::from(byte - b'0'))?;
            digits.checked_mul(10)?.checked_add(digit)
        })?;
        let parts = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let (factor, divisor) = (numerator.checked_mul(ONE)?, denominator.checked_mul(parts)?);
        // In lowest terms, so that the product overflows only if the amount itself does.
        let common = greatest_common_divisor(factor, divisor);
        let (scaled, divisor) = (digits.checked_mul(factor / common)?, divisor / common);
        // More precise than Kubernetes: it rounds up.
        let amount = scaled.checked_add(divisor - 1)? / divisor;
        Some(Self(if negative { -amount } else { amount }))
    }

    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0).max(0))
    }

    /// Rounds up to whole units.
    #[must_use]
    pub fn rounded_up(self, unit: Self) -> Self {
        let over = self.0.checked_rem_euclid(unit.0).unwrap_or_default();
        if over == 0 { self } else { Self(self.0.saturating_add(unit.0 - over)) }
    }

    /// Rounds down to whole units.
    #[must_use]
    pub fn rounded_down(self, unit: Self) -> Self {
        Self(self.0 - self.0.checked_rem_euclid(unit.0).unwrap_or_default())
    }

    /// The product with a factor; the maximum on overflow.
    #[must_use]
    pub fn times(self, factor: Self) -> Self {
        Self(self.0.saturating_mul(factor.0) / ONE)
    }

    /// The quotient by a factor; zero for a factor of zero.
    #[must_use]
    pub fn divided_by(self, factor: Self) -> Self {
        Self(self.0.saturating_mul(ONE).checked_div(factor.0).unwrap_or_default())
    }

    /// Whether it is more than the product of another amount and a ratio. Kubernetes computes
    /// with inexact fractions: if neither is a whole multiple of
    /// the other, an equal amount is treated as more.
    pub fn exceeds(self, factor: Self, other: Self) -> bool {
        let (own, most) = (self.0.saturating_mul(ONE), other.0.saturating_mul(factor.0));
        own > most || own == most && factor.0 % ONE != 0
    }

    /// Whether it is a whole multiple of another amount; zero has no multiples.
    pub fn is_multiple_of(self, unit: Self) -> bool {
        self.0.checked_rem(unit.0) == Some(0)
    }

    /// The number of whole units, such as bytes, rounded down; `None` if it is negative or too large.
    pub fn whole(self) -> Option<usize> {
        usize::try_from(self.0.div_euclid(ONE)).ok()
    }

    /// Whether it is zero.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

fn greatest_common_divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The factor of a suffix, as a fraction.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    const POWERS: [&str; 6] = ["k", "M", "G", "T", "P", "E"];
    let power = |base: i128, at: usize| Some((base.checked_pow(u32::try_from(at + 1).ok()?)?, 1));
    match suffix {
        "" => return Some((1, 1)),
        "m" => return Some((1, 1_000)),
        "u" => return Some((1, 1_000_000)),
        "n" => return Some((1, 1_000_000_000)),
        "Ki" => return Some((1024, 1)),
        _ => {}
    }
    if let Some(at) = POWERS.iter().position(|name| *name == suffix) {
        return power(1000, at);
    }
    if let Some(at) = POWERS.iter().position(|name| suffix.strip_suffix('i') == Some(name)) {
        return power(1024, at);
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let size = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, size) } else { (size, 1) })
}

impl fmt::Display for Quantity {
    /// The shortest usual form: `250m`, `2`, `128Mi`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(amount) = *self;
        if amount % ONE == 0 {
            let whole = amount / ONE;
            for (size, suffix) in [(1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")] {
                if whole != 0 && whole % size == 0 {
                    return write!(f, "{}{suffix}", whole / size);
                }
            }
            return write!(f, "{whole}");
        }
        for (size, suffix) in [(ONE / 1_000, "m"), (ONE / 1_000_000, "u")] {
            if amount % size == 0 {
                return write!(f, "{}{suffix}", amount / size);
            }
        }
        write!(f, "{amount}n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_of_a_large_amount_is_read_as_the_same() {
        let parsed = Quantity::parse("2222222222222222222222222221.3").expect("a quantity");
        assert_eq!(parsed.to_string(), "2222222222222222222222222221300m");
        assert_eq!(Quantity::parse(&parsed.to_string()), Some(parsed));
    }

    #[test]
    fn the_fast_path_has_the_same_result() {
        for number in ["0", "1", "007", "64", "999999999", "1000000000", "", "-1", "+1", "1.5"] {
            for suffix in ["", "m", "u", "n", "k", "M", "Ki", "Mi", "Gi", "Ti", "e3", "x"] {
                let text = format!("{number}{suffix}");
                assert_eq!(Quantity::parse(&text), Quantity::any(&text), "{text}");
            }
        }
    }

    #[test]
    fn quantities_have_the_same_value_as_in_kubernetes() {
        for (one, same) in [
            ("0.5", "500m"),
            ("1", "1000m"),
            ("1k", "1000"),
            ("1Ki", "1024"),
            ("2e3", "2k"),
            ("2E-3", "2m"),
            ("1E", "1000P"),
            ("1.5Gi", "1536Mi"),
            (".5", "500m"),
            ("5.", "5"),
            ("+1", "1"),
            ("100u", "0.1m"),
        ] {
            let parse = |text| Quantity::parse(text).unwrap_or_else(|| panic!("{text} is a quantity"));
            assert_eq!(parse(one), parse(same), "{one} {same}");
        }
        for bad in ["", "m", "1x", "1.2.3", "--1", "1Kii", "e3", "."] {
            assert_eq!(Quantity::parse(bad), None, "{bad}");
        }
        assert!(Quantity::parse("-1").is_some_and(|negative| negative < Quantity::ZERO));
    }

    #[test]
    fn a_limit_is_compared_with_a_request() {
        let parse = |text| Quantity::parse(text).unwrap_or_else(|| panic!("{text} is a quantity"));
        for (limit, ratio, request, exceeds) in [
            ("400m", "4", "100m", false),
            ("401m", "4", "100m", true),
            ("109m", "1.1", "100m", false),
            ("110m", "1.1", "100m", true),
            ("1Gi", "2", "512Mi", false),
            ("1", "2", "0", true),
        ] {
            let is_more = parse(limit).exceeds(parse(ratio), parse(request));
            assert_eq!(is_more, exceeds, "{limit} to {request}, {ratio} at most");
        }
        assert_eq!(parse("1001m").rounded_up(Quantity::ONE), parse("2"));
        assert_eq!(parse("1999m").rounded_down(Quantity::ONE), parse("1"));
        assert_eq!(parse("2").rounded_up(Quantity::ONE), parse("2"));
        assert_eq!(parse("300m").times(parse("1.5")), parse("450m"));
        assert_eq!(parse("1").divided_by(parse("3")).rounded_up(Quantity::MILLI), parse("334m"));
        assert_eq!(parse("1").divided_by(Quantity::ZERO), Quantity::ZERO);
    }

    #[test]
    fn a_quantity_is_written_in_its_usual_form() {
        for text in ["0", "250m", "2", "128Mi", "1Gi", "3Ki", "1500n", "7u"] {
            let shown = Quantity::parse(text).map(|quantity| quantity.to_string());
            assert_eq!(shown.as_deref().and_then(Quantity::parse), Quantity::parse(text), "{shown:?}");
        }
        assert_eq!(Quantity::mebibytes(256).to_string(), "256Mi");
        assert_eq!(Quantity::parse("1.5").expect("a quantity").to_string(), "1500m");
    }
}
