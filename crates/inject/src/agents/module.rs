//! The configuration of a web server's module.

use std::collections::BTreeMap;

use super::directive::{Arguments, Syntax};
use crate::{
    compiled::Prepared,
    edit::{Place, container_at, own_env},
    injection::Injection,
    pod::Container,
    reason::Reason,
    resource::Attributes,
    target,
};

/// The placeholder that the agent's script replaces by the pod's name.
const INSTANCE: &str = "<<SID-PLACEHOLDER>>";

/// The module of a web server.
pub struct Module {
    /// The prefix of its directives.
    pub prefix: &'static str,
    /// The text before its directives.
    pub head: fn(&Prepared) -> String,
    /// The syntax of the server's configuration.
    pub syntax: Syntax,
    /// The value "yes" of directives other than the one that enables it.
    pub yes: &'static str,
}

/// The value of a directive, and where it comes from.
struct Directive {
    value: String,
    field: String,
}

impl Module {
    /// The module's configuration, read by the agent's script.
    ///
    /// # Errors
    /// The field with a value that cannot be written.
    pub fn conf(&self, injection: &Injection<'_, '_>, place: Place) -> Result<String, Reason> {
        let mut conf = (self.head)(injection.prepared());
        for (name, Directive { value, field }) in self.directives(injection, place) {
            let is_own = name.starts_with(self.prefix);
            let arguments = if is_own { Arguments::One } else { Arguments::Several };
            let line = self.syntax.line(&name, &value, arguments);
            let line =
                line.map_err(|problem| Reason::DirectiveInvalid { field, directive: shown(&name), problem })?;
            conf.push_str(&line);
        }
        Ok(conf)
    }

    /// The directives of the module; those of the Instrumentation override ours.
    fn directives(&self, injection: &Injection<'_, '_>, place: Place) -> BTreeMap<String, Directive> {
        let (facts, instrumentation) = (injection.facts, injection.instrumentation());
        let container = container_at(facts.pod, place);
        let attributes = injection.attributes(place);
        let endpoint = instrumentation.exporter.endpoint().unwrap_or("http://localhost:4317/");
        let ours = [
            ("Enabled", "ON", ""),
            ("OtelSpanExporter", "otlp", ""),
            ("OtelExporterEndpoint", endpoint, "spec.exporter.endpoint"),
            ("ServiceName", &attributes.service_name, "the name of the service"),
            ("ServiceNamespace", service_namespace(injection, container, &attributes), "metadata.namespace"),
            ("ServiceInstanceId", INSTANCE, ""),
            ("ResolveBackends", self.yes, ""),
            ("TraceAsError", self.yes, ""),
        ];
        let ours = ours.map(|(name, value, field)| {
            let directive = Directive { value: value.to_owned(), field: field.to_owned() };
            (format!("{}{name}", self.prefix), directive)
        });
        let part = injection.plan.language.defaults.map_or("", |defaults| defaults.field);
        let own = injection.prepared().attrs.iter().enumerate().map(|(index, (name, value))| {
            (name.clone(), Directive { value: value.clone(), field: format!("spec.{part}.attrs[{index}]") })
        });
        ours.into_iter().chain(own).collect()
    }
}

/// The name of a directive in a message.
fn shown(name: &str) -> String {
    /// The maximum length, in characters.
    const LONGEST: usize = 60;
    format!("{:?}", name.chars().take(LONGEST).collect::<String>())
}

/// The pod's namespace; the server's name if only the container's own attributes set one.
fn service_namespace<'a>(
    injection: &'a Injection<'_, '_>,
    container: &Container<'_>,
    attributes: &'a Attributes<'_>,
) -> &'a str {
    const KEY: &str = "k8s.namespace.name";
    let of_pod = &*injection.facts.pod.metadata.namespace;
    if !of_pod.is_empty() {
        return of_pod;
    }
    let hidden = own_env(container).is_ok_and(|env| target::own_keys(&env).has(KEY));
    let known = attributes.get(KEY).filter(|name| !hidden && !name.is_empty());
    known.unwrap_or(injection.plan.language.name)
}
