//! Which agents can use the file of `spec.declarativeConfig`.

use otel_webhook_api::defaults::Release;
use otel_webhook_inject::declarative::SUPPORT;

use super::{beginning, code, table};

pub fn page() -> String {
    let release = |(major, minor): Release| format!("{major}.{minor}");
    let mut text = beginning(
        "Agents and the configuration file",
        "Which versions of the default images, and of mirrors with the same name, can use \
         [`spec.declarativeConfig`](../guides/declarative-config.md). Other versions, and other images, are unknown. \
         Agents for Go, Apache HTTPD and nginx have no such file.",
    ) + "\n";
    text += &table(
        ["language", "from", "before", "variables", "`file_format`", "rules", "limits", "known from"],
        SUPPORT.iter().map(|row| {
            let variables = row.path.iter().map(code);
            let others = row.others.iter().map(|(name, value)| code(format!("{name}={value}")));
            [
                row.language.to_owned(),
                release(row.versions.0),
                row.versions.1.map(release).unwrap_or_default(),
                variables.chain(others).collect::<Vec<_>>().join(", "),
                row.formats.join(", "),
                if row.has_rules { "yes" } else { "" }.to_owned(),
                row.lost.to_owned(),
                row.source.to_owned(),
            ]
        }),
    );
    text
}
