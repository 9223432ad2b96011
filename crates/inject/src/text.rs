//! Strings, lists, maps and objects borrowed from a request's JSON.
//!
//! JSON strings without escapes are borrowed, the others owned; `null` is parsed
//! as the empty value, as by the API server's decoder.

use std::{
    borrow::{Borrow, Cow},
    collections::HashMap,
    fmt,
    marker::PhantomData,
    ops::Deref,
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// A string of the request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }
}

/// An object of the request. Serde also parses a list as a struct, field by
/// field; the API server does not.
#[derive(Clone, Debug, Default)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Object)
    }
}

/// Parses a field that is an object, or null; for `deserialize_with`.
///
/// # Errors
/// If it is something else.
pub fn object_or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    optional_object(deserializer).map(Option::unwrap_or_default)
}

/// The same, with `None` for null.
///
/// # Errors
/// If it is something else.
pub fn optional_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Object<T>>::deserialize(deserializer)?.map(|object| object.0))
}

/// A list of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T>(pub Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E>(self) -> Result<List<T>, E> {
        Ok(List::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(Object(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(List(list))
    }
}

/// Lists of up to so many entries are searched in order, which is faster than an index.
pub const FEW: usize = 16;

/// A map of strings, such as labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map<'a> {
    entries: Vec<(Text<'a>, Text<'a>)>,
    /// The positions by key, if there are many entries. The last of a repeated key is used, as in Go's decoder.
    index: HashMap<Text<'a>, usize>,
}

impl Map<'_> {
    /// The value of a key, if it exists.
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = if self.index.is_empty() {
            self.entries.iter().rfind(|(name, _)| &**name == key)
        } else {
            self.index.get(key).map(|at| &self.entries[*at])
        };
        found.map(|(_, value)| &**value)
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many entries there are, those with a repeated key included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Map<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MapVisitor)
    }
}

struct MapVisitor;

impl<'de> Visitor<'de> for MapVisitor {
    type Value = Map<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_unit<E>(self) -> Result<Map<'de>, E> {
        Ok(Map::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Map<'de>, A::Error> {
        let mut map: Vec<(Text<'de>, Text<'de>)> = Vec::with_capacity(entries.size_hint().unwrap_or(8));
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        let mut index = HashMap::new();
        if map.len() > FEW {
            index.extend(map.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)));
        }
        Ok(Map { entries: map, index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Text<'a>,
        #[serde(borrow, deserialize_with = "optional_object")]
        below: Option<Box<Named<'a>>>,
        list: List<Empty>,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Empty {}

    #[test]
    fn the_last_of_a_repeated_key_is_used_however_many_there_are() {
        for count in [2, FEW, FEW + 1, 1000] {
            let entries: Vec<_> = (0..count).map(|index| format!(r#""k{}":"{index}""#, index / 2)).collect();
            let text = format!("{{{}}}", entries.join(","));
            let map: Map<'_> = serde_json::from_str(&text).expect("a map");
            assert_eq!((map.get("k0"), map.get("none")), (Some("1"), None), "{count}");
            assert_eq!(map.iter().count(), count);
        }
    }

    #[test]
    fn a_list_is_not_an_object() {
        let read = |text| serde_json::from_str::<Object<Named>>(text).map(|object| object.0);
        let good = read(r#"{"name": "a", "below": {"name": "b"}, "list": [{}]}"#).expect("objects");
        assert_eq!((&*good.name, good.below.is_some_and(|below| &*below.name == "b")), ("a", true));
        assert_eq!(good.list.len(), 1);
        assert!(read(r#"{"below": null, "list": null}"#).expect("nothing").below.is_none());
        for text in [r#"["a"]"#, r#"{"below": ["b"]}"#, r#"{"list": [[]]}"#] {
            let problem = read(text).expect_err("a list").to_string();
            assert!(problem.starts_with("invalid type: sequence, expected an object"), "{text}: {problem}");
        }
    }
}
