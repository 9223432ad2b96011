//! Tells the program what cargo builds it for, which only build scripts are told.

use std::env;

fn main() {
    for name in ["TARGET", "PROFILE"] {
        let value = env::var(name).expect("cargo sets it for build scripts");
        println!("cargo::rustc-env=OTEL_WEBHOOK_BUILD_{name}={value}");
    }
    // Without this line, cargo would run this again after a change of any file.
    println!("cargo::rerun-if-changed=build.rs");
}
