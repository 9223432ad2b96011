//! The decision: which agent is injected into which container of a pod, and the patch
//! that injects it.
//!
//! ```text
//! pod + namespace + Instrumentations + settings
//!    └─ decide ──> which Instrumentation for which container, owners to look up
//!          └─ build (+ owners) ──> patch operations, findings
//! ```
//!
//! Pure and synchronous: no I/O, no clock, no environment, no logging. The
//! webhook, the command line and the tests call the same two functions.
//!
//! From the bottom up:
//!
//! - text and JSON: `json`, `path`, [`text`], [`line`], [`shown`], [`attribute_value`]
//! - input: [`pod`], [`annotation`], [`workload`], [`limits`], [`image`], `pod_security`, [`selector`], [`cluster`]
//! - results: `object_name`, [`pause`], [`reason`], `kept`, [`note`], `other_agent`, `attribute_problem`, `finding`, `outcome`, [`growth`]
//! - the table of languages: [`language`]
//! - settings and Instrumentations: `held`, `settings`, [`helpers`], `exporter`, `resource`,
//!   [`compiled`], [`catalogue`], [`size`], `input`
//! - the choice: `mark`, `containers`, `select`, `decide`
//! - edits: [`env`], `token_mount`, `edit`, `container`, [`stamp`], `patch`
//! - resources of the pod and limits of its namespace: `demand`, `fitting`, `storage`, `secrets`
//! - one language in one pod: `injection`, `delivery`, `target`, `agents`; `required_nodes`, `warning` and `message` look
//!   at the result
//! - the whole: `build`, [`template`]; [`object`] reads stored objects
//! - what no decision sees: [`mistakes`] in annotations and labels, and selectors that match [`nearly`]

mod added;
pub mod agents;
pub mod annotation;
mod attribute_problem;
pub mod attribute_value;
mod build;
pub mod catalogue;
pub mod cluster;
pub mod compiled;
mod container;
mod containers;
mod decide;
pub mod declarative;
mod delivery;
mod demand;
mod edit;
pub mod env;
mod exporter;
mod finding;
mod fitting;
pub mod growth;
mod held;
pub mod helpers;
pub mod image;
mod injection;
mod input;
mod json;
pub mod language;
pub mod limits;
pub mod line;
pub mod mark;
mod message;
pub mod mistakes;
pub mod nearly;
pub mod note;
pub mod object;
mod object_name;
mod other_agent;
mod outcome;
mod patch;
mod path;
pub mod pause;
pub mod pod;
pub mod pod_image;
mod pod_security;
pub mod probes;
pub mod reason;
mod required_nodes;
mod resource;
mod secrets;
mod select;
pub mod selector;
mod settings;
pub mod shown;
pub mod size;
pub mod stamp;
mod storage;
mod target;
pub mod template;
pub mod text;
mod token_mount;
mod user;
mod warning;
pub mod workload;

pub use build::build;
pub use decide::{Decision, decide};
pub use finding::{Finding, Used};
pub use input::Input;
pub use note::Note;
pub use outcome::Outcome;
pub use patch::Patch;
pub use select::{rivals, unselected};
pub use settings::{CrossNamespace, InitResources, PrivilegedInit, Settings};
pub use stamp::{LABEL, MESSAGE, STATUS};
pub use warning::{Warning, warnings_of};
