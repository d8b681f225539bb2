//! Flags for the limits of a service.

use burst_server::Limits;
use clap::Args;

/// A flag that is not given leaves the default, which `docs/SPEC.md` lists with the code that a
/// client is given when it reaches the limit.
#[derive(Args, Default)]
pub(crate) struct LimitArgs {
    #[command(flatten)]
    accounts: AccountArgs,
    #[command(flatten)]
    client: ClientArgs,
}

/// What all users have together, and what one of them has over all of its clients.
#[derive(Args, Default)]
#[command(next_help_heading = "Limits of the service and of each user")]
struct AccountArgs {
    /// Bytes of memory that is held for all users together: prepared models, computed constants,
    /// working memory, memories that the service makes. Default: three quarters of the memory of the
    /// machine, or of the control group where that has less.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_memory: Option<u64>,
    /// The same for one user. Default: half of that.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_memory_per_user: Option<u64>,
    /// Bytes of address space that memories and queues of all users are mapped to. Default: four times
    /// the memory.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_address_space: Option<u64>,
    /// The same for one user. Default: half of that.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_address_space_per_user: Option<u64>,
    /// Threads that work for all users: one for each connection, burst and slow call. Default: 1024
    /// and 512 for each processor, fewer where memory or the system allows fewer.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_threads: Option<u64>,
    /// The same for one user. Default: half of that.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_threads_per_user: Option<u64>,
    /// File descriptors that are kept for all users. Default: three quarters of those that the
    /// process may have.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_descriptors: Option<u64>,
    /// The same for one user. Default: half of that.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_descriptors_per_user: Option<u64>,
    /// Connections of all users together. Default: 256.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_clients: Option<u64>,
    /// Connections of one user. Default: 192.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_clients_per_user: Option<u64>,
    /// Connections of one user that have not greeted. Default: 32.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_ungreeted_per_user: Option<u64>,
    /// Calls of all users that may take long at the same time. Default: four for each connection, at
    /// most half of the threads.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_all_slow_calls: Option<u64>,
    /// The same of one user. Default: half of that.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_slow_calls_per_user: Option<u64>,
    /// Buffers of drivers that one user has. Their bytes count as its memory. Default: 1024.
    #[arg(long, value_name = "N")]
    max_buffers_per_user: Option<u64>,
    /// Executions of one user that were started and are not waited for. Default: 1024.
    #[arg(long, value_name = "N")]
    max_pending_executions_per_user: Option<u64>,
    /// Milliseconds that an execution may wait for its fences, whatever its deadline says. Default: 60000.
    #[arg(long, value_name = "MS")]
    max_fence_wait: Option<u64>,
    /// Set-up calls of one user per second, over time; 0 for no limit. Default: 5000.
    #[arg(long, value_name = "N")]
    setup_rate: Option<u64>,
    /// Set-up calls of one user at once after a pause. Default: 20000.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    setup_burst: Option<u64>,
}

/// What one connection has.
#[derive(Args, Default)]
#[command(next_help_heading = "Limits of one client")]
struct ClientArgs {
    /// Calls that may take long at the same time. Default: 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=64))]
    max_slow_calls: Option<u64>,
    /// Prepared models. Default: 64.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_models: Option<u64>,
    /// Buffers of drivers. Default: 256.
    #[arg(long, value_name = "N")]
    max_buffers: Option<u64>,
    /// Bursts. Default: 256.
    #[arg(long, value_name = "N")]
    max_bursts: Option<u64>,
    /// Memories: shared ones, those in slots, those of models. Default: 512.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_memories: Option<u64>,
    /// Bytes of all memories together, in whole pages. Default: 8589934592.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_mapped_bytes: Option<u64>,
    /// Bytes that the service allocates for outputs. Default: 1073741824.
    #[arg(long, value_name = "BYTES")]
    max_allocated_bytes: Option<u64>,
    /// Bytes of one model with its constants. Default: 2147483648.
    #[arg(long, value_name = "BYTES", value_parser = at_least_one)]
    max_model_bytes: Option<u64>,
    /// Datums of a queue, and so of a packet. Default: 65536.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_queue_datums: Option<u64>,
    /// Executions that were started and are not waited for; fenced ones until they are released. Default: 256.
    #[arg(long, value_name = "N")]
    max_pending_executions: Option<u64>,
}

/// A limit that a service cannot do with 0 of.
fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(limit @ 1..) => Ok(limit),
        Ok(_) => {
            Err("with 0 no client could do anything; without the option the default holds".into())
        }
        Err(_) => Err("expected a whole number from 1 on".into()),
    }
}

impl LimitArgs {
    /// The defaults for this machine, with what was asked for.
    pub(crate) fn limits(&self) -> Limits {
        let LimitArgs { accounts, client } = self;
        let mut limits = Limits::default();
        let asked = [
            (&mut limits.memory_bytes, accounts.max_memory),
            (&mut limits.memory_bytes_per_user, accounts.max_memory_per_user),
            (&mut limits.address_space_bytes, accounts.max_address_space),
            (&mut limits.address_space_bytes_per_user, accounts.max_address_space_per_user),
            (&mut limits.threads, accounts.max_threads),
            (&mut limits.threads_per_user, accounts.max_threads_per_user),
            (&mut limits.descriptors, accounts.max_descriptors),
            (&mut limits.descriptors_per_user, accounts.max_descriptors_per_user),
            (&mut limits.clients, accounts.max_clients),
            (&mut limits.clients_per_user, accounts.max_clients_per_user),
            (&mut limits.ungreeted_per_user, accounts.max_ungreeted_per_user),
            (&mut limits.all_slow_calls, accounts.max_all_slow_calls),
            (&mut limits.slow_calls_per_user, accounts.max_slow_calls_per_user),
            (&mut limits.buffers_per_user, accounts.max_buffers_per_user),
            (&mut limits.pending_executions_per_user, accounts.max_pending_executions_per_user),
            (&mut limits.fence_wait_ms, accounts.max_fence_wait),
            (&mut limits.setup_rate, accounts.setup_rate),
            (&mut limits.setup_burst, accounts.setup_burst),
            (&mut limits.slow_calls, client.max_slow_calls),
            (&mut limits.models, client.max_models),
            (&mut limits.buffers, client.max_buffers),
            (&mut limits.bursts, client.max_bursts),
            (&mut limits.memories, client.max_memories),
            (&mut limits.mapped_bytes, client.max_mapped_bytes),
            (&mut limits.allocated_bytes, client.max_allocated_bytes),
            (&mut limits.model_bytes, client.max_model_bytes),
            (&mut limits.queue_datums, client.max_queue_datums),
            (&mut limits.pending_executions, client.max_pending_executions),
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
        let client = ClientArgs { max_models: Some(3), ..ClientArgs::default() };
        let accounts = AccountArgs {
            setup_rate: Some(0),
            max_memory_per_user: Some(5),
            ..AccountArgs::default()
        };
        let mut want = Limits::default();
        want.models = 3;
        want.setup_rate = 0;
        want.memory_bytes_per_user = 5;
        assert_eq!(LimitArgs { accounts, client }.limits(), want);
    }

    #[test]
    fn defaults_that_help_names_are_those_that_hold() {
        // A default that depends on the machine is said in words.
        let command = LimitArgs::augment_args(clap::Command::new("serve"));
        let limits = Limits::default();
        let want = [
            ("max_clients", limits.clients),
            ("max_clients_per_user", limits.clients_per_user),
            ("max_ungreeted_per_user", limits.ungreeted_per_user),
            ("max_buffers_per_user", limits.buffers_per_user),
            ("max_pending_executions_per_user", limits.pending_executions_per_user),
            ("max_fence_wait", limits.fence_wait_ms),
            ("setup_rate", limits.setup_rate),
            ("setup_burst", limits.setup_burst),
            ("max_slow_calls", limits.slow_calls),
            ("max_models", limits.models),
            ("max_buffers", limits.buffers),
            ("max_bursts", limits.bursts),
            ("max_memories", limits.memories),
            ("max_mapped_bytes", limits.mapped_bytes),
            ("max_allocated_bytes", limits.allocated_bytes),
            ("max_model_bytes", limits.model_bytes),
            ("max_queue_datums", limits.queue_datums),
            ("max_pending_executions", limits.pending_executions),
        ];
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let said = want.iter().find(|(name, _)| *name == id);
            let said =
                said.map_or_else(|| "Default: ".to_owned(), |(_, n)| format!("Default: {n}"));
            let is_half = help == "The same for one user. Default: half of that";
            assert!(is_half || help.contains(&said), "{id}: {said:?} is not in {help:?}");
        }
    }
}
