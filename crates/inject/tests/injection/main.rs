//! The decision on whole pods: the operator's recorded results by language, the differences from
//! it, and what holds for generated pods. Nothing of the program is built for these.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` makes a value, and a test reads better without the &"
)]

mod cases;
mod conformance;
mod copied_json;
mod differences;
mod hostile;
mod image_volumes;
mod languages;
mod owners;
mod paused;
mod properties;
mod run_again;
mod scripts;
mod tokens;
mod v1beta1;
