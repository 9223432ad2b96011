//! The code of the agents: one file for each language, above the parts that several share.

mod agent_image;
mod apache_httpd;
mod copied;
mod directive;
mod dotnet;
mod generic;
mod go;
mod java;
mod module;
mod nginx;
mod nodejs;
mod python;
pub mod scripts;
mod sdk;
mod web_server;

use crate::{injection::Injection, language::LanguageId};

/// Injects the language of the plan into the pod.
pub(crate) fn inject(injection: &mut Injection<'_, '_>) {
    match injection.plan.language.id {
        LanguageId::Java => copied::inject(injection, &java::AGENT),
        LanguageId::Nodejs => copied::inject(injection, &nodejs::AGENT),
        LanguageId::Python => copied::inject(injection, &python::AGENT),
        LanguageId::Dotnet => copied::inject(injection, &dotnet::AGENT),
        LanguageId::Go => go::inject(injection),
        LanguageId::ApacheHttpd => web_server::inject(injection, &apache_httpd::SERVER),
        LanguageId::Nginx => web_server::inject(injection, &nginx::SERVER),
        LanguageId::Sdk => sdk::inject(injection),
        LanguageId::Agent => generic::inject(injection),
    }
}
