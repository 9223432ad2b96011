//! States of running pods, and how they are counted.

mod counts;
mod failing;
mod pods;
mod support;
