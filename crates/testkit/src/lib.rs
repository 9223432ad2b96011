//! What tests and benches share. No crate depends on it but for its tests.
//!
//! | modules | what they have |
//! |---|---|
//! | [`objects`], [`files`], [`table`] | pods and Instrumentations by hand, the data of `tests/data` |
//! | [`known`], [`surroundings`] | injection into a pod, without the program |
//! | [`conformance`] | the operator's recorded results |
//! | [`generated`] | pods, Instrumentations and namespaces made from a number |
//! | [`models`] | what Kubernetes accepts, computed a second time; what injection must not change |
//! | [`until`], [`admin`], [`runner`] | waiting, requests to a program, and end-to-end cases that run side by side |
//! | [`cluster`] | a real control plane, processes, pods as the API server has them |
//! | [`containers`] | pods in real containers |
//! | [`load`] | reviews, senders and figures of the benches |
//! | [`fuzzed`] | what has to hold for any input |
//! | [`reports`] | reports about running pods |
//! | [`source`] | a store of metrics |
//!
//! It does not depend on the program, so that the tests of a crate are built without it:
//! where a process is started, the caller passes the path of the program. `cluster`, `containers`, `load`,
//! `reports` and `fuzzed` need a feature (`cluster` for the second, `fuzz` for the last).

pub mod admin;
#[cfg(feature = "cluster")]
pub mod cluster;
pub mod conformance;
#[cfg(feature = "cluster")]
pub mod containers;
pub mod files;
#[cfg(feature = "fuzz")]
pub mod fuzzed;
pub mod generated;
pub mod known;
#[cfg(feature = "load")]
pub mod load;
pub mod models;
pub mod objects;
#[cfg(feature = "reports")]
pub mod reports;
pub mod runner;
pub mod source;
pub mod surroundings;
pub mod table;
pub mod until;
