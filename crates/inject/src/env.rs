//! The variables of a container while they are edited: precedence, extension
//! and order (docs/reference/injection.md, "Environment variables").
//!
//! The container's own variables override those of the Instrumentation,
//! and those override derived ones. Only a few variables are extended; no
//! other variable of the container is changed.

use std::{borrow::Cow, collections::HashMap};

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use crate::{
    held::held,
    json,
    pod::Variable,
    reason::{Reason, Taken},
    text::FEW,
};

/// The prefix for the name of an extended variable's original (D1).
pub const ORIGINAL_PREFIX: &str = "OTEL_INJECT_ORIGINAL_";

/// The list of a container's variables.
#[derive(Clone, Debug, Default)]
pub struct Env<'p> {
    entries: Vec<Entry<'p>>,
    own: usize,
    /// The number of changes; shows whether a language added anything.
    edits: usize,
}

impl<'p> Env<'p> {
    /// The container's own variables.
    pub fn new(own: Vec<Variable<'p>>) -> Self {
        /// The number of variables that are added to most targets.
        const USUAL: usize = 16;
        let mut entries = Vec::with_capacity(own.len() + USUAL);
        entries.extend(own.into_iter().enumerate().map(own_entry));
        Self { own: entries.len(), entries, edits: 0 }
    }

    /// The variables in order.
    pub fn entries(&self) -> &[Entry<'p>] {
        &self.entries
    }

    /// The variables in order.
    pub fn into_entries(self) -> Vec<Entry<'p>> {
        self.entries
    }

    /// The number of edits so far.
    pub fn edits(&self) -> usize {
        self.edits
    }

    /// The size of what is added as JSON, about, in bytes.
    pub fn added(&self) -> usize {
        self.entries.iter().map(Entry::added).sum()
    }

    /// The number of the container's own variables.
    pub fn own_count(&self) -> usize {
        self.own
    }

    /// The value of a variable, if it is set by a value.
    pub fn value(&self, name: &str) -> Option<&str> {
        let entry = &self.entries[self.position(name)?];
        entry.from.is_none().then_some(&*entry.value)
    }

    /// Whether a variable is in the list.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The effective variable.
    pub fn get(&self, name: &str) -> Option<&Entry<'p>> {
        self.position(name).map(|at| &self.entries[at])
    }

    /// Adds a variable at the end, unless it is in the list.
    pub fn set_default(&mut self, entry: Entry<'p>) {
        if !self.has(&entry.name) {
            self.push(entry);
        }
    }

    /// Adds variables of an Instrumentation at the end. One in the list stays, unless another
    /// language added it and `set_by` overrides it: then it gets the new value at its position.
    pub fn set_defaults(&mut self, settings: &'p [Setting], set_by: SetBy) {
        let positions = self.positions(settings);
        for (setting, position) in settings.iter().zip(positions) {
            let entry = Entry { set_by, ..setting.into() };
            match position {
                None => self.push(entry),
                Some(at) if self.entries[at].set_by > set_by => {
                    self.entries[at] = entry;
                    self.edits += 1;
                }
                Some(_) => {}
            }
        }
    }

    /// Moves a variable before all others, with this value unless it has one.
    /// The container's own variable is not moved.
    pub fn lead_with(&mut self, entry: Entry<'p>) {
        match self.position(&entry.name) {
            None => self.insert(0, entry),
            Some(at) if self.entries[at].origin.is_none() => self.entries[..=at].rotate_right(1),
            Some(_) => {}
        }
    }

    /// Extends a variable, or adds it at the end.
    ///
    /// The value of a reference is unknown. Its entry is
    /// renamed and keeps its position; the variable is added right after it
    /// and refers to it (D1).
    pub fn extend(&mut self, name: &'p str, text: impl FnOnce(Option<&str>) -> String) {
        let Some(at) = self.position(name) else {
            return self.push(Entry::extended(name, text(None)));
        };
        if self.entries[at].from.is_some() {
            let reference = self.rename(at, name);
            let value = text(Some(&reference));
            self.insert(at + 1, Entry::extended(name, value));
        } else {
            let value = text(Some(&self.entries[at].value));
            self.revalue(at, value);
        }
    }

    /// Extends a variable like [`Env::extend`] and moves it to the end of the list.
    pub fn extend_last(&mut self, name: &'static str, text: impl FnOnce(Option<&str>) -> String) {
        let Some(at) = self.position(name) else {
            return self.push(Entry::extended(name, text(None)));
        };
        if self.entries[at].from.is_some() {
            let reference = self.rename(at, name);
            self.push(Entry::extended(name, text(Some(&reference))));
        } else {
            let value = text(Some(&self.entries[at].value));
            self.revalue(at, value);
            self.move_last(name);
        }
    }

    /// Moves a variable to the end of the list.
    pub fn move_last(&mut self, name: &str) {
        if let Some(at) = self.position(name) {
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
    }

    /// Checks that a variable can be extended, including the value that an Instrumentation
    /// would set: for the language, then for every target.
    ///
    /// # Errors
    /// The reason why extending it would lose something.
    pub fn check_extensible(&self, name: &str, settings: &[&[Setting]]) -> Result<(), Reason> {
        let set = settings.iter().zip([SetBy::Language, SetBy::Common]).find_map(|(list, set_by)| {
            let setting = list.iter().find(|setting| setting.name == name)?;
            Some(Entry { set_by, ..setting.into() })
        });
        let present = self.get(name);
        // In the order of `set_defaults`, which is called after this.
        let counts = set.as_ref().filter(|set| present.is_none_or(|present| present.set_by > set.set_by));
        let from = counts.or(present).and_then(|entry| entry.from.as_ref());
        let Some(from) = from else { return Ok(()) };
        if from.is_optional() {
            return Err(Reason::OptionalReference { variable: name.to_owned() });
        }
        let original = format!("{ORIGINAL_PREFIX}{name}");
        let set = settings.iter().copied().flatten().any(|setting| setting.name == original);
        if set || self.has(&original) {
            return Err(Reason::taken(Taken::Variable, &original));
        }
        Ok(())
    }

    /// The positions of the variables of an Instrumentation, of which none is repeated.
    fn positions(&self, settings: &[Setting]) -> Vec<Option<usize>> {
        if settings.len().min(self.entries.len()) <= FEW {
            return settings.iter().map(|setting| self.position(&setting.name)).collect();
        }
        let index: HashMap<&str, usize> =
            self.entries.iter().enumerate().map(|(at, entry)| (&*entry.name, at)).collect();
        settings.iter().map(|setting| index.get(setting.name.as_str()).copied()).collect()
    }

    /// The position of the variable. Of several the last one is used (D26), as by the kubelet.
    fn position(&self, name: &str) -> Option<usize> {
        self.entries.iter().rposition(|entry| entry.name == name)
    }

    fn push(&mut self, entry: Entry<'p>) {
        self.insert(self.entries.len(), entry);
    }

    fn insert(&mut self, at: usize, entry: Entry<'p>) {
        self.entries.insert(at, entry);
        self.edits += 1;
    }

    fn rename(&mut self, at: usize, name: &str) -> String {
        let entry = &mut self.entries[at];
        entry.name = Cow::Owned(format!("{ORIGINAL_PREFIX}{name}"));
        if entry.origin.is_some() {
            entry.change = Change::Name;
        }
        format!("$({ORIGINAL_PREFIX}{name})")
    }

    fn revalue(&mut self, at: usize, value: String) {
        self.edits += 1;
        let entry = &mut self.entries[at];
        entry.value = Cow::Owned(value);
        entry.set_by = SetBy::Container;
        if entry.origin.is_some() {
            entry.change = Change::Value;
        }
    }
}

fn own_entry((index, variable): (usize, Variable<'_>)) -> Entry<'_> {
    Entry {
        name: variable.name.0,
        value: variable.value.0,
        from: variable.value_from.map(|from| Source::Json(Cow::Owned(from))),
        origin: Some(index),
        change: Change::None,
        set_by: SetBy::Container,
    }
}

/// One variable in the list.
#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Name; changed only for the original of an extended variable.
    pub name: Cow<'p, str>,
    /// Value; empty if `from` is set.
    pub value: Cow<'p, str>,
    /// Where the value comes from, if not from `value`.
    pub from: Option<Source<'p>>,
    /// Its index in the container's own list, if it is in it.
    pub origin: Option<usize>,
    /// Whether name or value differ from the container's own.
    pub change: Change,
    /// The source of the variable.
    pub set_by: SetBy,
}

/// The `valueFrom` of a variable.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Source<'p> {
    /// As the container or the Instrumentation has it.
    Json(Cow<'p, Value>),
    /// A field of the pod.
    Field(FieldRef),
}

impl Source<'_> {
    /// Whether the variable may be unset because its source is optional.
    pub fn is_optional(&self) -> bool {
        let Self::Json(from) = self else { return false };
        ["secretKeyRef", "configMapKeyRef", "fileKeyRef"].iter().any(|kind| from[kind]["optional"] == true)
    }
}

/// A reference to a field of the pod.
#[derive(Clone, Debug, Serialize)]
pub struct FieldRef {
    #[serde(rename = "fieldRef")]
    field: FieldPath,
}

#[derive(Clone, Debug, Serialize)]
struct FieldPath {
    #[serde(rename = "fieldPath")]
    path: &'static str,
}

/// The source of a variable; earlier ones override later ones (D13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetBy {
    /// The container itself, or several sources if it was extended.
    Container,
    /// The language's part of an Instrumentation.
    Language,
    /// The part of an Instrumentation for every target.
    Common,
    /// It was derived.
    Derived,
}

/// The change of a container's own variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is unchanged.
    None,
    /// It has a new value.
    Value,
    /// It has a new name.
    Name,
}

/// A variable that an Instrumentation sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Its value; empty if `from` is set.
    pub value: String,
    /// Its `valueFrom`.
    pub from: Option<Box<Value>>,
}

held!(Setting: name, value, from;);

impl<'p> Entry<'p> {
    /// A derived variable.
    pub fn new(name: impl Into<Cow<'p, str>>, value: impl Into<Cow<'p, str>>) -> Self {
        let (name, value) = (name.into(), value.into());
        Self { name, value, from: None, origin: None, change: Change::None, set_by: SetBy::Derived }
    }

    /// The size of what is added as JSON, about, in bytes.
    pub(super) fn added(&self) -> usize {
        const EMPTY: usize = r#"{"name":"","value":""},"#.len();
        let value = || match &self.from {
            Some(Source::Json(from)) => json::of(from).len(),
            Some(Source::Field(FieldRef { field })) => {
                r#"{"fieldRef":{"fieldPath":""}}"#.len() + field.path.len()
            }
            None => self.value.len(),
        };
        match (self.origin, self.change) {
            (None, _) => self.name.len() + value() + EMPTY,
            (Some(_), Change::None) => 0,
            (Some(_), Change::Value) => self.value.len(),
            (Some(_), Change::Name) => self.name.len(),
        }
    }

    /// An extended variable, which has several sources.
    pub(super) fn extended(name: &'p str, value: String) -> Self {
        Self { set_by: SetBy::Container, ..Self::new(name, value) }
    }

    /// Whether the variable may be unset because its source is optional.
    pub fn is_optional(&self) -> bool {
        self.from.as_ref().is_some_and(Source::is_optional)
    }

    /// Whether its value comes from the same source as that of a setting.
    pub fn has_source_of(&self, setting: &Setting) -> bool {
        matches!((&self.from, &setting.from), (Some(Source::Json(one)), Some(other)) if **one == **other)
    }

    /// A variable that refers to a field of the pod, such as `metadata.name`.
    pub fn field(name: &'static str, path: &'static str) -> Self {
        Self { from: Some(Source::Field(FieldRef { field: FieldPath { path } })), ..Self::new(name, "") }
    }
}

impl Serialize for Entry<'_> {
    /// As an entry of a container's list.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut variable = serializer.serialize_struct("EnvVar", 2)?;
        variable.serialize_field("name", &self.name)?;
        match &self.from {
            Some(from) => variable.serialize_field("valueFrom", from)?,
            None => variable.serialize_field("value", &self.value)?,
        }
        variable.end()
    }
}

impl<'p> From<&'p Setting> for Entry<'p> {
    fn from(setting: &'p Setting) -> Self {
        Self {
            from: setting.from.as_ref().map(|from| Source::Json(Cow::Borrowed(from))),
            ..Self::new(setting.name.as_str(), setting.value.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(json: &str) -> Env<'_> {
        Env::new(serde_json::from_str(json).expect("variables"))
    }

    fn shown(env: &Env<'_>) -> Vec<String> {
        let show = |entry: &Entry<'_>| match entry.from {
            Some(_) => format!("{} from", entry.name),
            None => format!("{}={}", entry.name, entry.value),
        };
        env.entries().iter().map(show).collect()
    }

    #[test]
    fn a_reference_is_kept_under_another_name() {
        let mut env = env(
            r#"[{"name":"A","valueFrom":{"configMapKeyRef":{"name":"m","key":"k"}}},{"name":"B","value":"$(A)"}]"#,
        );
        env.extend("A", |old| format!("{} more", old.unwrap_or_default()));
        assert_eq!(
            shown(&env),
            ["OTEL_INJECT_ORIGINAL_A from", "A=$(OTEL_INJECT_ORIGINAL_A) more", "B=$(A)"]
        );
    }

    #[test]
    fn the_last_of_a_repeated_variable_is_extended() {
        let mut env = env(r#"[{"name":"A","value":"1"},{"name":"A","value":"2"}]"#);
        env.extend("A", |old| format!("{}+", old.unwrap_or_default()));
        assert_eq!(shown(&env), ["A=1", "A=2+"]);
    }

    #[test]
    fn an_optional_reference_is_not_extended() {
        for kind in ["secretKeyRef", "configMapKeyRef", "fileKeyRef"] {
            let json = format!(r#"[{{"name":"A","valueFrom":{{"{kind}":{{"key":"k","optional":true}}}}}}]"#);
            let refused = env(&json).check_extensible("A", &[]).expect_err("optional");
            assert_eq!(refused.code(), "OptionalReference");
        }
    }
}
