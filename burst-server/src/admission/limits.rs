//! What one client, one user and all of them together may use.

use burst_wire::control::SLOW_CALLS_MAX;

use super::machine::Machine;

/// Limits of a service. Those of users and of the whole service depend on the machine; the others
/// suit one with some GiB of memory.
///
/// What a user's clients have together counts against that user's limits, what all users have
/// together against the service's. `docs/SPEC.md` lists the status with which the service answers
/// a client that reaches a limit, and the test that reaches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once. Each costs a thread or two and its descriptors.
    pub clients: u64,
    /// Connections of one user at once, so that one user cannot keep all others out.
    pub clients_per_user: u64,
    /// Connections of one user that have not greeted. They count as connections, too.
    pub ungreeted_per_user: u64,
    /// Bytes of memory that the service holds for all users: what devices charge for prepared
    /// models, constants that they computed and working memory of bursts, what the service
    /// decodes, and the memories it allocates.
    pub memory_bytes: u64,
    /// The same for one user.
    pub memory_bytes_per_user: u64,
    /// Bytes of address space that memories and queues of all users are mapped to, in whole pages.
    pub address_space_bytes: u64,
    /// The same for one user.
    pub address_space_bytes_per_user: u64,
    /// Threads that work for all users: one reads each connection, and further ones where its client makes
    /// slow calls (one of them stays); one serves each burst; one runs each execution that nobody waits for
    /// and that may run, and one for each client tells of those that end before they run.
    pub threads: u64,
    /// The same for one user.
    pub threads_per_user: u64,
    /// File descriptors that the service keeps for all users: connections, memories, queues.
    pub descriptors: u64,
    /// The same for one user.
    pub descriptors_per_user: u64,
    /// Slow calls of all users in progress at once.
    pub all_slow_calls: u64,
    /// Slow calls of one user in progress at once.
    pub slow_calls_per_user: u64,
    /// Slow calls of one client in progress at once: those that may take long (queries about a
    /// model, preparing it, executions over the socket).
    pub slow_calls: u64,
    /// Prepared models of one client.
    pub models: u64,
    /// Buffers of drivers that one client has. Their bytes count as the user's memory; this bounds how
    /// many entries they have in tables, and the roles that each of them has.
    pub buffers: u64,
    /// The same for one user.
    pub buffers_per_user: u64,
    /// Bursts of one client. Each is a thread with an execution context.
    pub bursts: u64,
    /// Memories of one client: shared ones, those in slots, those of models. Each keeps a
    /// descriptor open.
    pub memories: u64,
    /// Bytes of one client's memories, as far as they are mapped, in whole pages.
    pub mapped_bytes: u64,
    /// Bytes that the service allocates for one client (output memories it makes), in all.
    pub allocated_bytes: u64,
    /// Bytes of one model, constants included.
    pub model_bytes: u64,
    /// Datums of a queue. A packet can be as long as the queue, and is copied.
    pub queue_datums: u64,
    /// Executions of one client that were started and are not waited for: those that have not ended,
    /// and fenced ones that were not released.
    pub pending_executions: u64,
    /// The same for one user.
    pub pending_executions_per_user: u64,
    /// Milliseconds that an execution may wait for its fences, whatever its deadline says.
    pub fence_wait_ms: u64,
    /// Set-up calls (connecting, models, memories, bursts, whatever brings descriptors) of one user
    /// per second, over time. They start threads and map memory: work that no other limit bounds
    /// when things are let go of again at once. 0 for as many as the client likes.
    pub setup_rate: u64,
    /// Set-up calls that may come at once after a pause.
    pub setup_burst: u64,
}

/// What a thread takes at most, roughly: the pages of its stack that are touched, its tables in the
/// kernel, and room for a message.
const THREAD_BYTES: u64 = 128 << 10;
/// Threads for users that a machine has at least, and those that each processor adds: most of
/// them sleep.
const THREADS: u64 = 1024;
const THREADS_PER_PROCESSOR: u64 = 512;
/// Connections at once.
const CLIENTS: u64 = 256;
/// Executions under way of one client: some ten frames ahead on each of many models.
const PENDING: u64 = 256;
/// Far longer than a frame takes anywhere, and short for who looks for what hangs.
const FENCE_WAIT_MS: u64 = 60_000;

impl Limits {
    /// Limits for a machine:
    ///
    /// | | the service | one user |
    /// |---|---|---|
    /// | memory | three quarters of the machine's | half of that |
    /// | address space | four times the machine's memory, at most half of what the process may have | half |
    /// | threads | 1024, and 512 for each processor; at most an eighth of the memory at 128 KiB each, and half of the tasks that the process may have | half |
    /// | descriptors | three quarters of the process's, at most half of the mappings that it may have | half |
    /// | slow calls | four for each connection, at most half of the threads | half |
    /// | connections | 256 | three quarters |
    #[must_use]
    pub fn for_machine(machine: &Machine) -> Self {
        let Machine { memory_bytes, processors, tasks, descriptors, mappings, address_space_bytes } =
            *machine;
        let threads = (THREADS + processors.saturating_mul(THREADS_PER_PROCESSOR))
            .min(memory_bytes / 8 / THREAD_BYTES)
            .min(tasks / 2);
        let memory = memory_bytes / 4 * 3;
        let address_space = memory_bytes.saturating_mul(4).min(address_space_bytes / 2);
        let descriptors = (descriptors / 4).saturating_mul(3).min(mappings / 2);
        let slow_calls = (CLIENTS * SLOW_CALLS_MAX as u64).min(threads / 2);
        Limits {
            clients: CLIENTS,
            clients_per_user: CLIENTS / 4 * 3,
            ungreeted_per_user: 32,
            memory_bytes: memory,
            memory_bytes_per_user: memory / 2,
            address_space_bytes: address_space,
            address_space_bytes_per_user: address_space / 2,
            threads,
            threads_per_user: threads / 2,
            descriptors,
            descriptors_per_user: descriptors / 2,
            all_slow_calls: slow_calls,
            slow_calls_per_user: slow_calls / 2,
            slow_calls: SLOW_CALLS_MAX as u64,
            models: 64,
            buffers: 256,
            buffers_per_user: 1024,
            bursts: 256,
            memories: 512,
            mapped_bytes: 8 << 30,
            allocated_bytes: 1 << 30,
            model_bytes: 2 << 30,
            queue_datums: 64 << 10,
            pending_executions: PENDING,
            pending_executions_per_user: PENDING * 4,
            fence_wait_ms: FENCE_WAIT_MS,
            setup_rate: 5000,
            setup_burst: 20_000,
        }
    }

    /// The same with everything for one user, and no rate: for a service that belongs to one client.
    #[must_use]
    pub fn for_one_user(self) -> Self {
        Limits {
            clients_per_user: self.clients,
            memory_bytes_per_user: self.memory_bytes,
            address_space_bytes_per_user: self.address_space_bytes,
            threads_per_user: self.threads,
            descriptors_per_user: self.descriptors,
            slow_calls_per_user: self.all_slow_calls,
            buffers_per_user: self.buffers_per_user.max(self.buffers),
            pending_executions_per_user: self.pending_executions,
            setup_rate: 0,
            ..self
        }
    }
}

/// For this machine, which is looked at once: before the process locks itself in
/// ([`Sandbox`](crate::Sandbox)).
impl Default for Limits {
    fn default() -> Self {
        Limits::for_machine(Machine::here())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn machine() -> Machine {
        Machine {
            memory_bytes: 16 * GIB,
            processors: 4,
            tasks: 100_000,
            descriptors: 1 << 19,
            mappings: 65_530,
            address_space_bytes: u64::MAX,
        }
    }

    #[test]
    fn the_whole_is_made_from_the_machine_and_no_user_may_take_all_of_it() {
        let limits = Limits::for_machine(&machine());
        assert_eq!(limits.memory_bytes, 12 * GIB);
        assert_eq!(limits.address_space_bytes, 64 * GIB);
        assert_eq!(limits.threads, 1024 + 4 * 512);
        assert_eq!(limits.descriptors, 32_765);
        assert_eq!(limits.all_slow_calls, 1024);
        for (share, whole) in [
            (limits.clients_per_user, limits.clients),
            (limits.memory_bytes_per_user, limits.memory_bytes),
            (limits.address_space_bytes_per_user, limits.address_space_bytes),
            (limits.threads_per_user, limits.threads),
            (limits.descriptors_per_user, limits.descriptors),
            (limits.slow_calls_per_user, limits.all_slow_calls),
        ] {
            assert!(share > 0 && share <= whole / 4 * 3, "{share} of {whole}");
        }
        let alone = limits.for_one_user();
        assert_eq!(alone.memory_bytes_per_user, alone.memory_bytes);
        assert_eq!((alone.threads_per_user, alone.setup_rate), (alone.threads, 0));
    }

    #[test]
    fn whatever_the_machine_has_least_of_bounds_what_depends_on_it() {
        let small = Limits::for_machine(&Machine { memory_bytes: GIB, ..machine() });
        assert_eq!(small.threads, GIB / 8 / THREAD_BYTES);
        assert_eq!(small.memory_bytes, GIB / 4 * 3);
        let few_tasks = Limits::for_machine(&Machine { tasks: 200, ..machine() });
        assert_eq!((few_tasks.threads, few_tasks.all_slow_calls), (100, 50));
        let few_descriptors = Limits::for_machine(&Machine { descriptors: 1024, ..machine() });
        assert_eq!(few_descriptors.descriptors, 768);
        let narrow = Limits::for_machine(&Machine { address_space_bytes: 8 * GIB, ..machine() });
        assert_eq!(narrow.address_space_bytes, 4 * GIB);
    }
}
