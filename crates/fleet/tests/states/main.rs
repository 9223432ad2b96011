//! States of running pods, and how they are counted.

mod counts;
mod pods;
mod support;
