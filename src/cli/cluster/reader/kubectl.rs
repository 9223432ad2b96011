//! `kubectl` for the same cluster.

use super::ClusterFlags;

impl ClusterFlags {
    /// Returns `kubectl` with the flags that select this cluster, for a shell.
    pub fn kubectl(&self) -> String {
        let file = self.kubeconfig.as_ref().map(|file| ("--kubeconfig", file.to_string_lossy().into_owned()));
        let context = self.context.clone().map(|name| ("--context", name));
        let flags = file.into_iter().chain(context);
        ["kubectl".to_owned()]
            .into_iter()
            .chain(flags.map(|(flag, value)| format!("{flag} {}", quoted(&value))))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Returns a word that a shell reads as this text.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_the_cluster_are_passed_on() {
        let of = |kubeconfig: Option<&str>, context: Option<&str>| {
            let context = context.map(str::to_owned);
            ClusterFlags { kubeconfig: kubeconfig.map(Into::into), context }.kubectl()
        };
        assert_eq!(of(None, None), "kubectl");
        assert_eq!(of(Some("a/b.yaml"), None), "kubectl --kubeconfig a/b.yaml");
        assert_eq!(of(None, Some("it's; rm")), "kubectl --context 'it'\\''s; rm'");
    }
}
