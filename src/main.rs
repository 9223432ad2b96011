//! The program; all of it is in the library.

use otel_webhook_allocator::Mimalloc;
// Brings memcpy, memmove and memcmp.
use otel_webhook_memory as _;

#[global_allocator]
static ALLOCATOR: Mimalloc = Mimalloc;

fn main() -> std::process::ExitCode {
    otel_webhook::cli::run()
}
