#![no_main]

use libfuzzer_sys::fuzz_target;
use otel_webhook_store::manifest::{Style, read, write};

fuzz_target!(|data: &[u8]| otel_webhook_testkit::fuzzed::documents(
    data,
    |text| Some(read(text, "input").ok()?.into_iter().map(|document| document.value).collect()),
    |value| write(value, Style::of("")),
));
