//! Pods, Instrumentations and namespaces made from a number: the same number, the same object.

mod agents;
pub mod bounded_pods;
pub mod choices;
pub mod mistakes;
pub mod namespaces;
pub mod pods;
pub mod tokens;
