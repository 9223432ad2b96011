//! Which workloads have received a configuration, in few bytes: 50,000 of them fit into a ConfigMap.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::workload::Workload;

/// The bytes of a workload: its hash, and the attempt.
const BYTES: usize = 7;

/// The workloads that have received a configuration, and by which attempt last.
///
/// Of their kinds and names, 48 bits of a hash are kept, which is enough to distinguish them within a namespace. No
/// tenant can choose a name that has the hash of a workload in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Received(BTreeMap<String, Packed>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Packed(BTreeMap<u64, u8>);

impl Received {
    /// Returns the attempt that a workload has received last.
    pub fn attempt(&self, workload: &Workload) -> Option<u8> {
        self.0.get(&workload.namespace)?.0.get(&hash(workload)).copied()
    }

    /// Notes that a workload has received an attempt.
    pub fn insert(&mut self, workload: &Workload, attempt: u8) {
        self.0.entry(workload.namespace.clone()).or_default().0.insert(hash(workload), attempt);
    }

    /// Forgets a workload.
    pub fn remove(&mut self, workload: &Workload) {
        if let Some(packed) = self.0.get_mut(&workload.namespace) {
            packed.0.remove(&hash(workload));
            if packed.0.is_empty() {
                self.0.remove(&workload.namespace);
            }
        }
    }

    /// Returns the number of workloads.
    pub fn len(&self) -> usize {
        self.0.values().map(|packed| packed.0.len()).sum()
    }

    /// Returns the number of bytes in the ConfigMap.
    pub fn size(&self) -> usize {
        self.0.iter().map(|(namespace, packed)| namespace.len() + 6 + packed.0.len() * BYTES * 4 / 3).sum()
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = |(hash, attempt): (&u64, &u8)| {
            let [_, _, hash @ ..] = hash.to_be_bytes();
            hash.into_iter().chain([*attempt])
        };
        let bytes: Vec<u8> = self.0.iter().flat_map(one).collect();
        serializer.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = STANDARD_NO_PAD.decode(String::deserialize(deserializer)?).map_err(D::Error::custom)?;
        let (all, []) = bytes.as_chunks::<BYTES>() else {
            return Err(D::Error::custom("a part of a workload"));
        };
        let one = |[hash @ .., attempt]: &[u8; BYTES]| {
            let hash = hash.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte));
            (hash, *attempt)
        };
        Ok(Self(all.iter().map(one).collect()))
    }
}

/// The last 48 bits.
fn hash(workload: &Workload) -> u64 {
    fnv(&format!("{}/{}", workload.kind, workload.name)) & 0xffff_ffff_ffff
}

/// FNV-1a of 64 bits, which stays the same from version to version.
pub(super) fn fnv(text: &str) -> u64 {
    let next = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, next)
}
