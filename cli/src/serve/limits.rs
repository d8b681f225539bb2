//! Flags for the limits of a service.

use burst_server::Limits;
use clap::Args;

/// A flag that is not given leaves the default, which `docs/SPEC.md` lists with the code that a
/// client is given when it reaches the limit.
#[derive(Args, Default)]
#[command(next_help_heading = "Limits (of one client, where nothing else is said)")]
pub(crate) struct LimitArgs {
    /// Connections of all users together.
    #[arg(long, value_name = "N")]
    max_clients: Option<u64>,
    /// Connections of one user.
    #[arg(long, value_name = "N")]
    max_clients_per_user: Option<u64>,
    /// Prepared models.
    #[arg(long, value_name = "N")]
    max_models: Option<u64>,
    /// Bursts.
    #[arg(long, value_name = "N")]
    max_bursts: Option<u64>,
    /// Memories: shared ones, those in slots, those of models.
    #[arg(long, value_name = "N")]
    max_memories: Option<u64>,
    /// Bytes of all memories together.
    #[arg(long, value_name = "BYTES")]
    max_mapped_bytes: Option<u64>,
    /// Bytes of one model with its constants.
    #[arg(long, value_name = "BYTES")]
    max_model_bytes: Option<u64>,
    /// Datums of a queue, and so of a packet.
    #[arg(long, value_name = "N")]
    max_queue_datums: Option<u64>,
    /// Bytes that the service allocates for outputs.
    #[arg(long, value_name = "BYTES")]
    max_allocated_bytes: Option<u64>,
    /// Calls that may take long at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    max_slow_calls: Option<u64>,
    /// Set-up calls of one user per second, over time; 0 for no limit.
    #[arg(long, value_name = "N")]
    setup_rate: Option<u64>,
    /// Set-up calls of one user at once after a pause.
    #[arg(long, value_name = "N")]
    setup_burst: Option<u64>,
}

impl LimitArgs {
    /// The defaults with what was asked for.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        let asked = [
            (&mut limits.clients, self.max_clients),
            (&mut limits.clients_per_user, self.max_clients_per_user),
            (&mut limits.models, self.max_models),
            (&mut limits.bursts, self.max_bursts),
            (&mut limits.memories, self.max_memories),
            (&mut limits.mapped_bytes, self.max_mapped_bytes),
            (&mut limits.model_bytes, self.max_model_bytes),
            (&mut limits.queue_datums, self.max_queue_datums),
            (&mut limits.allocated_bytes, self.max_allocated_bytes),
            (&mut limits.slow_calls, self.max_slow_calls),
            (&mut limits.setup_rate, self.setup_rate),
            (&mut limits.setup_burst, self.setup_burst),
        ];
        for (limit, value) in asked {
            if let Some(value) = value {
                *limit = value;
            }
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_stays() {
        let args = LimitArgs { max_models: Some(3), setup_rate: Some(0), ..LimitArgs::default() };
        let mut want = Limits::default();
        want.models = 3;
        want.setup_rate = 0;
        assert_eq!(args.limits(), want);
    }
}
