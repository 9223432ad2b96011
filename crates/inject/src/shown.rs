//! Names and texts in messages, bounded.
//!
//! A pod is reviewed before the API server validates it: a name may have a megabyte, and a list
//! 50,000 names. What is said stays readable, and its size does not depend on the input:
//!
//! | what | bound |
//! |---|---|
//! | a list of names | [`MOST_NAMES`], and how many more there are |
//! | a name | [`LONGEST_NAME`] |
//! | another text, such as the value of an annotation | [`LONGEST_TEXT`] |
//! | findings about unknown containers | [`MOST_UNKNOWN`] for each language, and one for the others |
//! | owner lookups | `workload::MOST_LOOKUPS` |
//! | the annotation with the status | `stamp::LONGEST` |
//! | the annotation with the sentences | `message::LONGEST` |
//! | warnings, audit annotation and line of the log | the constants of the crate for AdmissionReviews |

use std::fmt::{self, Display, Write};

/// The maximum number of names that a message lists.
pub const MOST_NAMES: usize = 20;

/// The maximum length of a name in a message, in bytes: no object has a longer one.
pub const LONGEST_NAME: usize = 253;

/// The maximum length of any other text in a message, in bytes.
pub const LONGEST_TEXT: usize = 1024;

/// The maximum number of findings of a language about single containers that the pod does not have. One
/// more finding has the number of the others.
pub const MOST_UNKNOWN: usize = 10;

/// Names in a message: the first ones, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Names {
    listed: Vec<Box<str>>,
    more: usize,
}

impl Names {
    /// Keeps the first names, and counts the others.
    pub fn of<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.push(name.as_ref()));
        all
    }

    /// Adds a name.
    pub fn push(&mut self, name: &str) {
        if self.listed.len() < MOST_NAMES {
            self.listed.push(shown(name).to_string().into());
        } else {
            self.more += 1;
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

impl Display for Names {
    /// `app, proxy, and 3 more`; `none` if there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.listed.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.listed.join(", "))?;
        if self.more > 0 { write!(f, ", and {} more", self.more) } else { Ok(()) }
    }
}

/// A name as messages show it.
pub fn shown(name: &str) -> Short<&str> {
    Short { what: name, longest: LONGEST_NAME }
}

/// Something that is truncated in a message if it is too long.
pub struct Short<T> {
    /// What is shown.
    pub what: T,
    /// Its maximum length, in bytes.
    pub longest: usize,
}

impl<T: Display> Display for Short<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Cut { to: f, left: Some(self.longest) }, "{}", self.what)
    }
}

/// Writes the beginning of a text.
struct Cut<'f, 'b> {
    to: &'f mut fmt::Formatter<'b>,
    /// How much may still be written; `None` after the end.
    left: Option<usize>,
}

impl Write for Cut<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let Some(left) = self.left else { return Ok(()) };
        self.left = left.checked_sub(text.len());
        if self.left.is_some() {
            return self.to.write_str(text);
        }
        self.to.write_str(&text[..text.floor_char_boundary(left)])?;
        self.to.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_first_names_and_the_number_of_the_others() {
        assert_eq!(Names::default().to_string(), "none");
        assert_eq!(Names::of(["app", "proxy"]).to_string(), "app, proxy");
        let many = Names::of((0..45_000).map(|index| format!("c{index}"))).to_string();
        assert!(many.starts_with("c0, c1, ") && many.ends_with(", c19, and 44980 more"), "{many}");
    }

    #[test]
    fn a_long_name_is_truncated_between_characters() {
        assert_eq!(shown("app").to_string(), "app");
        let exact = "n".repeat(LONGEST_NAME);
        assert_eq!(shown(&exact).to_string(), exact);
        let long = shown(&"ü".repeat(100_000)).to_string();
        assert_eq!(long, "ü".repeat(LONGEST_NAME / 2) + "…");
    }
}
