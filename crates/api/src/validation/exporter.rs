//! The exporter: warnings about settings with which telemetry would not arrive.

use serde_json::Value;

use super::{secret, verdict::Verdict};
use crate::{
    declarative,
    defaulting::is_written,
    defaults::{LANGUAGES, LanguageDefaults},
    otlp::{self, Agent, Problem, Variable},
    values::is_hollow,
};

const ENDPOINT: &str = "spec.exporter.endpoint";

/// Warns about settings that contradict each other. `beta` is the object as v1beta1, if it has anything that only that
/// version has.
pub fn check(verdict: &mut Verdict, object: &Value, beta: &Value) {
    let spec = &object["spec"];
    let exporter = &spec["exporter"];
    let endpoint = exporter["endpoint"].as_str().unwrap_or_default();
    check_tls(verdict, endpoint, &exporter["tls"]);
    if secret::has_password(endpoint) {
        let message = "has a password, which everyone with read access to Instrumentations can see";
        verdict.warn("plain-credential", ENDPOINT, message);
    }
    // The file decides where telemetry goes.
    if !spec[declarative::FIELD].is_object() {
        check_arrival(verdict, object, &beta["spec"]["envConfig"]);
    }
}

fn check_tls(verdict: &mut Verdict, endpoint: &str, tls: &Value) {
    let is_set = |field: &str| tls[field].as_str().is_some_and(|name| !name.is_empty());
    let is_https = endpoint.starts_with("https://");
    for (present, missing) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
        if is_set(present) && !is_set(missing) {
            let field = format!("spec.exporter.tls.{missing}");
            verdict.warn(
                "tls-cert-without-key",
                field,
                format!("is not set, but {present} is; agents need both"),
            );
        }
    }
    if tls.is_object() && !is_https {
        let message = "does not begin with https://, so agents ignore spec.exporter.tls";
        verdict.warn("tls-without-https", ENDPOINT, message);
    }
    if is_https && tls.is_null() {
        let message = "begins with https://, but spec.exporter.tls is not set; agents use the CA bundles of the application's images";
        verdict.warn("https-without-tls", ENDPOINT, message);
    }
}

/// Warns if telemetry would not arrive: from every target by the common settings, and from the targets of
/// each language that the author configured by its own settings.
fn check_arrival(verdict: &mut Verdict, object: &Value, config: &Value) {
    let spec = &object["spec"];
    let mut found = Found::default();
    let common = Target { spec, config, language: None };
    found.add(common.problems(Agent::UNKNOWN), None);
    for language in LANGUAGES.into_iter().filter(|language| is_written(object, language)) {
        let image = spec[language.field]["image"].as_str().filter(|image| !image.is_empty());
        let agent = language.agent(image.unwrap_or(language.image));
        let target = Target { spec, config, language: Some(language) };
        found.add(target.problems(agent), Some(language.language));
    }
    for (field, problem, who) in found.0 {
        let kind = match problem {
            Problem::NoScheme { .. } => "endpoint-without-scheme",
            Problem::Port { .. } => "endpoint-port-contradicts-protocol",
        };
        verdict.warn(kind, field, problem.sentence(&who));
    }
}

/// Problems, each with the field that sets the endpoint and the affected languages.
#[derive(Default)]
struct Found(Vec<(String, Problem, Vec<&'static str>)>);

impl Found {
    fn add(&mut self, problems: Vec<(String, Problem)>, who: Option<&'static str>) {
        for (field, problem) in problems {
            let same = |(f, p, _): &&mut (String, Problem, _)| *f == field && p.is_like(&problem);
            match self.0.iter_mut().find(same) {
                Some((_, _, all)) => all.extend(who),
                None => self.0.push((field, problem, who.into_iter().collect())),
            }
        }
    }
}

/// The settings of targets, as far as the Instrumentation sets them.
struct Target<'s> {
    spec: &'s Value,
    /// `envConfig` of v1beta1.
    config: &'s Value,
    language: Option<&'static LanguageDefaults>,
}

impl<'s> Target<'s> {
    fn problems(&self, agent: Agent) -> Vec<(String, Problem)> {
        if let Some(directive) = self.language.and_then(|language| language.export.directive) {
            return self.problem_of_module(directive, agent).into_iter().collect();
        }
        let look = |name: &'static str| self.variable(name).map_or(Variable::Unset, |(_, seen)| seen);
        let problems = otlp::problems(look, agent).into_iter();
        let field = |problem: &Problem| self.variable(problem.variable()).map(|(field, _)| field);
        problems.map(|problem| (field(&problem).unwrap_or_default(), problem)).collect()
    }

    /// The module of a web server reads no variables.
    fn problem_of_module(&self, directive: &'static str, agent: Agent) -> Option<(String, Problem)> {
        let field = self.language.map(|language| language.field).unwrap_or_default();
        let own = listed(&format!("spec.{field}.attrs"), &self.spec[field]["attrs"], directive);
        let (field, Variable::Value(endpoint)) = own.or_else(|| self.endpoint())? else { return None };
        Some((field, otlp::problem_of_directive(directive, endpoint, agent)?))
    }

    /// The effective variable, and the field that sets it.
    fn variable(&self, name: &str) -> Option<(String, Variable<'s>)> {
        let of_language = self.language.and_then(|language| {
            listed(&format!("spec.{}.env", language.field), &self.spec[language.field]["env"], name)
        });
        let of_all = || listed("spec.env", &self.spec["env"], name);
        let of_exporter = || self.endpoint().filter(|_| name == otlp::ENDPOINT);
        let of_config = || listed("spec.envConfig.env", &self.config["env"], name);
        let of_protocol = || {
            let protocol = self.config["exporter"]["protocol"].as_str().filter(|_| name == otlp::PROTOCOL)?;
            Some(("spec.envConfig.exporter.protocol".to_owned(), Variable::Value(protocol)))
        };
        of_language.or_else(of_all).or_else(of_config).or_else(of_exporter).or_else(of_protocol)
    }

    fn endpoint(&self) -> Option<(String, Variable<'s>)> {
        let endpoint = self.spec["exporter"]["endpoint"].as_str()?;
        Some((ENDPOINT.to_owned(), Variable::Value(endpoint)))
    }
}

/// The entry of a list of variables.
fn listed<'s>(field: &str, list: &'s Value, name: &str) -> Option<(String, Variable<'s>)> {
    let mut entries = list.as_array()?.iter().enumerate();
    let (index, entry) = entries.find(|(_, entry)| entry["name"] == name)?;
    let seen = match entry["value"].as_str() {
        _ if !is_hollow(&entry["valueFrom"]) => Variable::Hidden,
        value => Variable::Value(value.unwrap_or_default()),
    };
    Some((format!("{field}[{index}]"), seen))
}
