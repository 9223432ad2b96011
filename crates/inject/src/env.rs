//! The variables of a container while they are edited: precedence, extension
//! and order (contract, section 5).
//!
//! What the container has itself comes before what the Instrumentation says,
//! and that before what is derived. Only a few variables are extended; nothing
//! else of the container's own is ever changed.

use std::borrow::Cow;

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::Value;

use super::{
    pod::Variable,
    reason::{Reason, Taken},
};

/// What the original of an extended variable is renamed to begin with (D1).
pub const ORIGINAL_PREFIX: &str = "OTEL_INJECT_ORIGINAL_";

/// One variable in the list.
#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Name; renamed only when the original has to make room.
    pub name: Cow<'p, str>,
    /// Value; empty where `from` gives it.
    pub value: Cow<'p, str>,
    /// Where the value comes from, if not from `value`.
    pub from: Option<Source<'p>>,
    /// Where it stood in the container's own list, if it did.
    pub origin: Option<usize>,
    /// Whether name or value differ from the container's own.
    pub change: Change,
    /// Who says so.
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

/// Who says what a variable is; whoever comes first counts (D13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetBy {
    /// The container itself, or several, where it was extended.
    Container,
    /// The language's part of an Instrumentation.
    Language,
    /// The part of an Instrumentation for every target.
    Common,
    /// It was derived from other things.
    Derived,
}

/// What was done to a container's own variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
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
    /// Its value; empty where `from` gives it.
    pub value: String,
    /// Its `valueFrom`.
    pub from: Option<Value>,
}

/// The list of a container's variables.
#[derive(Clone, Debug, Default)]
pub struct Env<'p> {
    entries: Vec<Entry<'p>>,
    own: usize,
    /// How often it was changed; tells whether a language had anything to add.
    edits: usize,
}

impl<'p> Entry<'p> {
    /// A derived variable that was not there before.
    pub fn new(name: impl Into<Cow<'p, str>>, value: impl Into<Cow<'p, str>>) -> Self {
        let (name, value) = (name.into(), value.into());
        Self { name, value, from: None, origin: None, change: Change::None, set_by: SetBy::Derived }
    }

    /// A variable that is extended, and so is nobody's alone.
    fn extended(name: &'static str, value: String) -> Self {
        Self { set_by: SetBy::Container, ..Self::new(name, value) }
    }

    /// A variable that takes a field of the pod, such as `metadata.name`.
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

impl<'p> Env<'p> {
    /// The container's own variables.
    pub fn new(own: Vec<Variable<'p>>) -> Self {
        /// As many variables as are added to most targets.
        const USUAL: usize = 16;
        let mut entries = Vec::with_capacity(own.len() + USUAL);
        entries.extend(own.into_iter().enumerate().map(own_entry));
        Self { own: entries.len(), entries, edits: 0 }
    }

    /// The variables in order.
    pub fn entries(&self) -> &[Entry<'p>] {
        &self.entries
    }

    /// How many edits there were so far.
    pub fn edits(&self) -> usize {
        self.edits
    }

    /// How many the container had itself.
    pub fn own_count(&self) -> usize {
        self.own
    }

    /// The value of a variable that is set by a value.
    pub fn value(&self, name: &str) -> Option<&str> {
        let entry = &self.entries[self.position(name)?];
        entry.from.is_none().then_some(&*entry.value)
    }

    /// Whether a variable is in the list.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The variable as it counts.
    pub fn get(&self, name: &str) -> Option<&Entry<'p>> {
        self.position(name).map(|at| &self.entries[at])
    }

    /// Adds a variable at the end, unless it is there.
    pub fn set_default(&mut self, entry: Entry<'p>) {
        if !self.has(&entry.name) {
            self.push(entry);
        }
    }

    /// Adds variables of an Instrumentation at the end. One that is there stays, unless another
    /// language put it there and `set_by` comes before it: then it gets its value where it stands.
    pub fn set_defaults(&mut self, settings: &'p [Setting], set_by: SetBy) {
        for setting in settings {
            let entry = Entry { set_by, ..setting.into() };
            match self.position(&entry.name) {
                None => self.push(entry),
                Some(at) if self.entries[at].set_by > set_by => {
                    self.entries[at] = entry;
                    self.edits += 1;
                }
                Some(_) => {}
            }
        }
    }

    /// Brings a variable before all others, with this value where nothing else gives it one.
    /// The container's own stays where it is.
    pub fn lead_with(&mut self, entry: Entry<'p>) {
        match self.position(&entry.name) {
            None => self.insert(0, entry),
            Some(at) if self.entries[at].origin.is_none() => self.entries[..=at].rotate_right(1),
            Some(_) => {}
        }
    }

    /// Extends a variable, or sets it at the end where it is not there.
    ///
    /// A value that comes from elsewhere cannot be seen here. Its entry is
    /// renamed and keeps its place; the variable then stands right behind it
    /// and refers to it (D1).
    pub fn extend(&mut self, name: &'static str, text: impl FnOnce(Option<&str>) -> String) {
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

    /// Extends a variable like [`Env::extend`] and brings it to the end of the list.
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

    /// Brings a variable to the end of the list.
    pub fn move_last(&mut self, name: &str) {
        if let Some(at) = self.position(name) {
            let entry = self.entries.remove(at);
            self.entries.push(entry);
        }
    }

    /// Whether a variable can be extended, looking at what an Instrumentation
    /// would set as well: for the language, then for every target.
    ///
    /// # Errors
    /// The reason why extending it would lose something.
    pub fn check_extensible(&self, name: &str, settings: &[&[Setting]]) -> Result<(), Reason> {
        let set = settings.iter().zip([SetBy::Language, SetBy::Common]).find_map(|(list, set_by)| {
            let setting = list.iter().find(|setting| setting.name == name)?;
            Some(Entry { set_by, ..setting.into() })
        });
        let present = self.get(name);
        // As of `set_defaults`, which is called after this.
        let counts = set.as_ref().filter(|set| present.is_none_or(|present| present.set_by > set.set_by));
        let from = counts.or(present).and_then(|entry| entry.from.as_ref());
        let Some(from) = from else { return Ok(()) };
        if is_optional(from) {
            return Err(Reason::OptionalReference { variable: name.to_owned() });
        }
        let original = format!("{ORIGINAL_PREFIX}{name}");
        let set = settings.iter().copied().flatten().any(|setting| setting.name == original);
        if set || self.has(&original) {
            return Err(Reason::taken(Taken::Variable, &original));
        }
        Ok(())
    }

    /// Where the variable stands. Of several the last one counts (D26), as for the kubelet.
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

/// Whether the variable may end up unset because its source need not exist.
fn is_optional(from: &Source<'_>) -> bool {
    let Source::Json(from) = from else { return false };
    ["secretKeyRef", "configMapKeyRef", "fileKeyRef"].iter().any(|kind| from[kind]["optional"] == true)
}

#[cfg(test)]
mod tests;
