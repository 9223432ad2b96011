//! The quality of service classes of Kubernetes.

use super::{amounts::CLASS_RESOURCES, asked::Asked};
use otel_webhook_api::quantity::Quantity;

/// The quality of service classes of Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every container's requests equal its limits, for CPU and memory.
    Guaranteed,
    /// There is a request or a limit.
    Burstable,
    /// There is no request and no limit.
    BestEffort,
}

impl Class {
    /// Computes the class as `ComputePodQOS` of Kubernetes does: by CPU and memory, without zeros.
    pub fn of<'c, 'p: 'c>(containers: impl IntoIterator<Item = &'c Asked<'p>>) -> Self {
        type Sums = [Option<Quantity>; 2];
        let add = |sums: &mut Sums, own: Sums| {
            for (sum, own) in sums.iter_mut().zip(own) {
                *sum = own.map(|own| sum.unwrap_or_default().plus(own)).or(*sum);
            }
        };
        let (mut requests, mut limits, mut limited) = ([None; 2], [None; 2], true);
        for container in containers {
            let own = CLASS_RESOURCES.map(|name| container.limits.get(name).filter(|own| !own.is_zero()));
            limited &= own.iter().all(Option::is_some);
            add(&mut limits, own);
            let own = CLASS_RESOURCES.map(|name| container.requests.get(name).filter(|own| !own.is_zero()));
            add(&mut requests, own);
        }
        if requests == [None; 2] && limits == [None; 2] {
            Self::BestEffort
        } else if limited && requests == limits {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}
