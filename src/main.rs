//! The program; all of it is in the library.

// Brings memcpy, memmove and memcmp.
use otel_webhook_memory as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    otel_webhook::cli::run()
}
