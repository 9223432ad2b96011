//! The status page: what running pods have, as one HTML file that needs nothing else.
//!
//! ```text
//! reports of clusters ──> rows.rs (text of each cell) ──> markup.rs (maud escapes it) + page.css + page.js ──> page
//! ```
//!
//! Names and reasons come from users' objects, and a file is opened far from any server's headers, so it has its
//! own policy, which allows this style and this script, by their hashes, and nothing that is fetched.
//!
//! The rows are a table in the document, not data from which a script makes one: one place writes them, and they can be
//! read where scripts do not run, as in the viewers of build artifacts. The script filters, sorts and copies.

mod markup;
mod policy;
mod rows;

use otel_webhook_fleet::report::ClusterReport;

/// Returns the page.
pub fn page(clusters: &[ClusterReport]) -> String {
    markup::document(clusters).into_string()
}

/// Returns the headers with which the page is served. They also forbid frames, guesses of the type, and copies in
/// caches.
pub fn headers() -> [(&'static str, String); 8] {
    [
        ("content-type", "text/html; charset=utf-8".to_owned()),
        ("content-security-policy", policy::of_response()),
        ("x-content-type-options", "nosniff".to_owned()),
        ("x-frame-options", "DENY".to_owned()),
        ("referrer-policy", "no-referrer".to_owned()),
        ("cache-control", "no-store".to_owned()),
        ("cross-origin-opener-policy", "same-origin".to_owned()),
        ("cross-origin-resource-policy", "same-origin".to_owned()),
    ]
}

#[cfg(test)]
mod tests;
