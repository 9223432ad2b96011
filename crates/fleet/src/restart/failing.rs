//! Pods that cannot start.

use jiff::Timestamp;
use serde_json::Value;

use super::seen::FailingPod;
use crate::failing::{is_given_up, waiting};

/// Returns the youngest of the pods that cannot start. `pods` are whole objects.
pub fn failing<'p>(pods: impl Iterator<Item = &'p Value>) -> Option<FailingPod> {
    pods.filter_map(read).max_by_key(|pod| pod.created)
}

fn read(pod: &Value) -> Option<FailingPod> {
    let metadata = &pod["metadata"];
    if !metadata["deletionTimestamp"].is_null() {
        return None;
    }
    let statuses = ["initContainerStatuses", "containerStatuses"].into_iter();
    let statuses = statuses.flat_map(|field| pod["status"][field].as_array().into_iter().flatten());
    let reason = { statuses }.filter_map(waiting).find(|reason| is_given_up(reason))?;
    let created: Timestamp = metadata["creationTimestamp"].as_str()?.parse().ok()?;
    Some(FailingPod {
        name: metadata["name"].as_str()?.to_owned(),
        uid: metadata["uid"].as_str()?.to_owned(),
        created,
        reason: reason.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_youngest_pod_that_a_kubelet_gave_up_is_found() {
        let pod = |name: &str, second: u8, list: &str, reason: &str| {
            json!({
                "metadata": {"name": name, "uid": name, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")},
                "status": {list: [{"state": {"running": {}}}, {"state": {"waiting": {"reason": reason}}}]},
            })
        };
        let pods = [
            pod("old", 1, "containerStatuses", "CrashLoopBackOff"),
            pod("new", 2, "initContainerStatuses", "ImagePullBackOff"),
            pod("slow", 3, "containerStatuses", "ContainerCreating"),
            pod("once", 4, "containerStatuses", "ErrImagePull"),
        ];
        let found = failing(pods.iter()).expect("one fails");
        assert_eq!((&*found.name, &*found.reason), ("new", "ImagePullBackOff"));
        assert_eq!(failing(pods[2..].iter()), None);
        let mut ending = pods[1].clone();
        ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        assert_eq!(failing([ending].iter()), None);
    }
}
