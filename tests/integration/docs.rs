//! The documentation: links, commands, manifests and names of all Markdown files.

mod commands;
mod links;
mod manifests;
mod markdown;
mod names;
mod programs;
mod questions;
mod recordings;
mod site;
mod summary;
mod values;
