//! States of running pods, and how they are counted.

mod advice;
mod counts;
mod failing;
mod generated;
mod heard;
mod memory;
mod paused;
mod pods;
mod silent;
mod support;
