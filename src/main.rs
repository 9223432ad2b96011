//! The program; all of it is in the library.

fn main() -> std::process::ExitCode {
    otel_webhook::cli::run()
}
