//! The documentation: links, commands, manifests and names of all Markdown files.

mod commands;
mod links;
mod manifests;
mod markdown;
mod site;
