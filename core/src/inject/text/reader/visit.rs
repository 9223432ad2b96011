//! What serde asks of a reader.

use serde::{
    de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};

use super::{GivenUp, Reader};
use crate::inject::text::raw;

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = GivenUp;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.peek().ok_or(GivenUp)? {
            b'"' => match self.string()? {
                (text, false) => visitor.visit_borrowed_str(text),
                (text, true) => {
                    let quoted = format!("\"{text}\"");
                    visitor.visit_string(serde_json::from_str(&quoted).map_err(|_| GivenUp)?)
                }
            },
            b'{' => {
                self.enter()?;
                visitor.visit_map(Items { reader: self, end: b'}', first: true })
            }
            b'[' => {
                self.enter()?;
                visitor.visit_seq(Items { reader: self, end: b']', first: true })
            }
            b't' => self.literal("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.literal("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.literal("null").and_then(|()| visitor.visit_unit()),
            _ => {
                let number = self.number()?;
                match u64::try_from(number) {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => visitor.visit_i64(number),
                }
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.peek().ok_or(GivenUp)? {
            b'n' => self.literal("null").and_then(|()| visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        self.skip().and_then(|_| visitor.visit_unit())
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, GivenUp> {
        if name == raw::NAME {
            visitor.visit_borrowed_str(self.skip()?)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier
    }
}

/// The items of a list, or the members of an object.
struct Items<'r, 'de> {
    reader: &'r mut Reader<'de>,
    end: u8,
    first: bool,
}

impl Items<'_, '_> {
    fn advance(&mut self) -> Result<bool, GivenUp> {
        let first = std::mem::replace(&mut self.first, false);
        self.reader.advance(self.end, first)
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = GivenUp;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, GivenUp> {
        if self.advance()? { seed.deserialize(&mut *self.reader).map(Some) } else { Ok(None) }
    }
}

impl<'de> MapAccess<'de> for Items<'_, 'de> {
    type Error = GivenUp;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, GivenUp> {
        if !self.advance()? {
            return Ok(None);
        }
        self.reader.peek().filter(|byte| *byte == b'"').ok_or(GivenUp)?;
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, GivenUp> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}
