//! Request and limit of one resource.

use otel_webhook_api::quantity::Quantity;

/// Request and limit of one resource.
pub type Pair = (Option<Quantity>, Option<Quantity>);
