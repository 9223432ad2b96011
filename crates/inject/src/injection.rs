//! The injection of one language into one pod.

use std::{cell::OnceCell, rc::Rc};

use serde_json::Value;

use super::{
    annotation::Annotations,
    catalogue::Namespace,
    cluster::Cluster,
    compiled::{Compiled, Prepared},
    demand::Demand,
    edit::{ContainerEdit, Place, PodEdit, container_at},
    finding::{Finding, Used},
    fitting::{self, Refusal},
    language::Language,
    limits::Limits,
    note::Note,
    pod_security::Level,
    reason::{Reason, Taken},
    resource::{Attributes, PodAttributes, PodFacts, RESOURCE_ATTRIBUTES},
    settings::{PrivilegedInit, Settings},
};
use otel_webhook_api::{defaults::Decoding, validation};

/// The containers into which a language is injected, and the Instrumentation.
#[derive(Debug)]
pub struct Plan<'p> {
    /// The language.
    pub language: &'static Language,
    /// The Instrumentation.
    pub instrumentation: &'p Compiled,
    /// Its part of the Instrumentation.
    pub part: usize,
    /// The image of the agent; empty if the language has none.
    pub image: &'p str,
    /// The notes about this image.
    pub image_notes: Vec<Note>,
    /// Init containers in the pod's order, then regular ones in the list's.
    pub targets: Vec<Place>,
    /// The position of the first name on the list, suitable or not; `None` if the pod
    /// does not have it.
    pub first_listed: Option<Place>,
    /// The notes about a selector that opts in, and about the selected container, if none is named and it is not
    /// the first.
    pub notes: Vec<Note>,
}

impl<'p> Plan<'p> {
    /// The language's part of the Instrumentation.
    pub fn prepared(&self) -> &'p Prepared {
        &self.instrumentation.parts[self.part]
    }

    /// The agent of `spec.agents`, if the language stands for those.
    pub fn agent(&self) -> Option<&'p str> {
        self.prepared().generic.as_ref().map(|agent| &*agent.name)
    }

    /// Whether a finding is about it.
    pub fn is_of(&self, finding: &Finding) -> bool {
        finding.language == self.language.name && finding.agent.as_deref() == self.agent()
    }

    /// Its field in the specification.
    pub fn field(&self) -> String {
        let field = self.language.field;
        self.agent().map_or_else(|| field.to_owned(), |agent| format!("{field}[{agent}]"))
    }

    /// How the agent reads resource attributes. SDKs in applications are expected to follow the specification.
    pub fn decoding(&self) -> Decoding {
        self.language.defaults.map_or(Decoding::Each, |defaults| defaults.decoding)
    }
}

/// A plan with the data that its execution needs.
pub struct Injection<'j, 'p> {
    /// The plan.
    pub plan: &'j Plan<'p>,
    /// The annotations of pod and namespace.
    pub annotations: &'j Annotations<'p>,
    /// The namespace.
    pub namespace: Option<&'p Namespace>,
    /// The nodes, if they are known.
    pub cluster: Option<&'p Cluster>,
    /// The common data of all containers of the pod.
    pub facts: &'j PodFacts<'p>,
    /// The settings of the installation.
    pub settings: &'j Settings,
    /// The resources of the pod; computed at the first use.
    pub demand: &'j OnceCell<Demand<'p>>,
    /// The resource attributes of all containers; collected at the first use.
    pub attributes: &'j OnceCell<Rc<PodAttributes<'p>>>,
    /// The edits.
    pub edit: &'j mut PodEdit<'p>,
    /// The findings.
    pub findings: &'j mut Vec<Finding>,
}

impl<'p> Injection<'_, 'p> {
    /// The Instrumentation.
    pub fn instrumentation(&self) -> &'p Compiled {
        self.plan.instrumentation
    }

    /// The resources of the pod.
    pub fn demand(&self) -> &Demand<'p> {
        self.demand.get_or_init(|| Demand::of(self.facts.pod, self.limits()))
    }

    /// The resource attributes of a container.
    pub fn attributes(&self, place: Place) -> Attributes<'p> {
        let collect = || Rc::new(PodAttributes::of(self.facts, &self.instrumentation().resource));
        let container = container_at(self.facts.pod, place);
        let of_pod = self.attributes.get_or_init(collect);
        Attributes::of(of_pod, self.facts.namespace, &container.name, &container.image)
    }

    /// The limits of the namespace.
    pub fn limits(&self) -> &'p Limits {
        self.namespace.map_or(&Limits::NONE, |namespace| &namespace.limits)
    }

    /// The language's part of the Instrumentation.
    pub fn prepared(&self) -> &'p Prepared {
        self.plan.prepared()
    }

    /// The image of the agent.
    pub fn image(&self) -> &'p str {
        self.plan.image
    }

    /// The edits of a target.
    ///
    /// # Errors
    /// The reason for an unreadable container.
    pub fn target(&mut self, place: Place) -> Result<&mut ContainerEdit<'p>, Reason> {
        let at = self.edit.open(place)?;
        Ok(&mut self.edit.containers[at])
    }

    /// The name of a container of the pod.
    pub fn name(&self, place: Place) -> &'p str {
        &container_at(self.facts.pod, place).name
    }

    /// The enforced pod security level of the namespace, if it rejects anything.
    pub fn enforced_level(&self) -> Option<Level> {
        self.namespace.and_then(|namespace| Level::of(namespace.enforced_level.as_deref()?))
    }

    /// The reason for a rejection by the namespace's pod security level.
    pub fn rejected_by_level(&self, refused: String) -> Reason {
        let level = self.namespace.and_then(|namespace| namespace.enforced_level.as_deref());
        let level = level.unwrap_or_default().to_owned();
        Reason::PodSecurity { namespace: self.facts.namespace.to_owned(), level, refused }
    }

    /// Checks that the installation and the namespace accept init containers with the security
    /// context of the Instrumentation. That of a target is the pod's own.
    ///
    /// # Errors
    /// The rejected field.
    pub fn check_security_context(&self) -> Result<(), Reason> {
        let Some(context) = &self.instrumentation().security_context else { return Ok(()) };
        if self.settings.privileged_init == PrivilegedInit::Deny
            && let Some(privilege) = validation::privileges(context).into_iter().next()
        {
            let name = self.instrumentation().name.clone();
            return Err(Reason::PrivilegedInitContainer { name, field: privilege.to_string() });
        }
        let Some(level) = self.enforced_level() else { return Ok(()) };
        match level.rejects(context, self.facts.pod.spec.security_context) {
            None => Ok(()),
            Some(field) => Err(self.rejected_by_level(format!(
                "init containers with spec.initContainerSecurityContext of the Instrumentation \"{}\": see {field}",
                self.instrumentation().name
            ))),
        }
    }

    /// Checks that the names of volumes and containers are not used in the pod,
    /// nor those of the volumes of certificates.
    ///
    /// # Errors
    /// The name that is already used (D17).
    pub fn check_names<'n>(
        &self,
        volumes: &[&str],
        containers: impl IntoIterator<Item = &'n str>,
    ) -> Result<(), Reason> {
        self.instrumentation().exporter.check_pod(self.facts.pod, &self.edit.volumes)?;
        if let Some(name) = volumes.iter().find(|name| self.edit.has_volume(name)) {
            return Err(Reason::taken(Taken::Volume, name));
        }
        let taken = self.edit.container_names();
        match containers.into_iter().find(|name| taken.contains(name)) {
            Some(name) => Err(Reason::taken(Taken::Container, name)),
            None => Ok(()),
        }
    }

    /// Checks that the namespace accepts the claims of volumes with these sources.
    ///
    /// # Errors
    /// The object that rejects one (D32).
    pub fn check_claims(&self, sources: &[&Value]) -> Result<(), Reason> {
        let checked = fitting::check_claims(self.limits(), self.edit, sources);
        let field = self.plan.field();
        checked.map_err(|Refusal { object, problem, .. }| Reason::ClaimRejected {
            field: format!("spec.{field}.volumeClaimTemplate"),
            object,
            problem,
        })
    }

    /// Injects into each target in order, and records the result. `work` gets
    /// whether a target was injected before. Returns the injected targets.
    pub fn each_target(
        &mut self,
        mut work: impl FnMut(&mut Self, Place, bool) -> Result<Vec<Note>, Reason>,
    ) -> Vec<Place> {
        let mut injected = Vec::with_capacity(self.plan.targets.len());
        for &place in &self.plan.targets {
            match work(self, place, !injected.is_empty()) {
                Ok(notes) => {
                    injected.push(place);
                    self.report(place, Reason::Injected, notes);
                }
                Err(reason) => self.report(place, reason, Vec::new()),
            }
            self.edit.measure(place);
            // The whole language is skipped then.
            if self.edit.check_size(0).is_err() {
                break;
            }
        }
        injected
    }

    /// Adds a note to the first injected target.
    pub fn note_injected(&mut self, note: Note) {
        let own = |finding: &&mut Finding| self.plan.is_of(finding) && finding.reason.is_injected();
        if let Some(finding) = self.findings.iter_mut().find(own) {
            finding.notes.push(note);
        }
    }

    /// Adds a note to the last finding.
    pub fn note(&mut self, note: Note) {
        let own = self.findings.iter_mut().rfind(|finding| self.plan.is_of(finding));
        if let Some(finding) = own {
            finding.notes.push(note);
        }
    }

    /// Records the result of a container.
    pub fn report(&mut self, place: Place, reason: Reason, notes: Vec<Note>) {
        if matches!(&reason, Reason::OptionalReference { variable } if variable == RESOURCE_ATTRIBUTES) {
            self.edit.without_attributes.insert(place);
        }
        let container = Some(self.name(place).to_owned());
        self.push(container, reason, notes);
    }

    /// Records the result of the whole language.
    pub fn report_all(&mut self, reason: Reason) {
        self.push(None, reason, Vec::new());
    }

    fn push(&mut self, container: Option<String>, reason: Reason, notes: Vec<Note>) {
        self.findings.push(Finding {
            language: self.plan.language.name,
            agent: self.plan.agent().map(Into::into),
            container,
            instrumentation: Some(Used::of(self.plan.instrumentation, self.plan.part, self.plan.image)),
            reason,
            notes,
        });
    }
}
