//! The sizes of agents in their volumes.
//!
//! Kubernetes counts the content of a pod's emptyDir volumes as ephemeral storage,
//! and evicts a pod that uses more than its containers' limits allow. The
//! sizes are those of the default images, measured as `docs/operations/sizes.md`
//! describes; an installation with other images can set its own.

use std::collections::BTreeMap;

use super::{
    defaults::{LANGUAGES, LanguageDefaults},
    quantity::Quantity,
};

/// The assumed size of an extension of the Java agent: it is unknown before the copy.
const EXTENSION_SIZE: Quantity = Quantity::mebibytes(10);

/// The key for the size of an extension, in addition to the names of the languages.
const EXTENSION: &str = "extension";

/// The sizes of agents and extensions in an installation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSizes(BTreeMap<String, Quantity>);

impl AgentSizes {
    /// The documented sizes, except for these.
    pub fn with(own: impl IntoIterator<Item = (String, Quantity)>) -> Self {
        Self(own.into_iter().collect())
    }

    /// The size of a language's agent with a number of extensions.
    pub fn of(&self, language: &LanguageDefaults, extensions: usize) -> Quantity {
        let agent = self.0.get(language.language).copied().unwrap_or(language.size);
        let extension = self.0.get(EXTENSION).copied().unwrap_or(EXTENSION_SIZE);
        (0..extensions).fold(agent, |sum, _| sum.plus(extension))
    }

    /// Reads a size: `java=40Mi`, or `extension=20Mi` for each extension of the Java agent.
    ///
    /// # Errors
    /// A message that says what is wrong, and what is valid.
    pub fn parse_one(text: &str) -> Result<(String, Quantity), String> {
        let (name, size) = text.split_once('=').ok_or("expected LANGUAGE=SIZE, such as java=40Mi")?;
        let with_agent = LANGUAGES.iter().filter(|language| !language.size.is_zero());
        let names: Vec<_> = with_agent.map(|language| language.language).chain([EXTENSION]).collect();
        if !names.contains(&name) {
            return Err(format!("\"{name}\" has no agent in a volume; valid: {}", names.join(", ")));
        }
        match Quantity::parse(size).filter(|size| *size > Quantity::ZERO) {
            Some(size) => Ok((name.to_owned(), size)),
            None => Err(format!("\"{size}\" is not a size; valid: a quantity above zero, such as 40Mi")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::{JAVA, NODEJS};

    #[test]
    fn configured_sizes_replace_the_documented_ones() {
        let own = ["java=40Mi", "extension=1Mi"].map(|text| AgentSizes::parse_one(text).expect("valid"));
        let sizes = AgentSizes::with(own);
        assert_eq!(sizes.of(&JAVA, 0), Quantity::mebibytes(40));
        assert_eq!(sizes.of(&JAVA, 2), Quantity::mebibytes(42));
        assert_eq!(sizes.of(&NODEJS, 0), NODEJS.size);
        assert_eq!(AgentSizes::default().of(&JAVA, 1), JAVA.size.plus(EXTENSION_SIZE));
    }

    #[test]
    fn the_error_names_an_invalid_size() {
        for (text, problem) in [
            ("java", "expected LANGUAGE=SIZE"),
            (
                "go=1Mi",
                "\"go\" has no agent in a volume; valid: java, nodejs, python, dotnet, apache-httpd, nginx, ",
            ),
            ("java=", "\"\" is not a size; valid: a quantity above zero"),
            ("java=-1Mi", "\"-1Mi\" is not a size"),
            ("java=0", "\"0\" is not a size"),
        ] {
            let found = AgentSizes::parse_one(text).expect_err(text);
            assert!(found.contains(problem), "{found}");
        }
    }
}
