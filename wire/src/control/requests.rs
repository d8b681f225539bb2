//! What executions, buffers and compilations are asked for in control messages.

use bincode::{Decode, Encode};
use burst_hal::{BufferRole, CACHE_TOKEN_BYTES, CacheFiles};

use super::bounded::List;
use super::values::{ARGUMENTS_MAX, RANK_MAX, WireArgument};

/// Pools that one request over the socket may have; the descriptors of one message are limited
/// by the kernel to 253.
pub const POOLS_MAX: usize = 128;
/// Fences that one execution may wait for.
pub const FENCES_MAX: u32 = 64;
/// Models that a buffer may have roles in.
const BUFFER_MODELS_MAX: usize = 64;
/// Roles of one buffer as inputs, and as outputs.
const ROLES_MAX: usize = 1024;

/// Where the bytes of a pool are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolSource {
    /// A memory that has a number.
    Shared {
        /// From `ShareMemory` or `AllocateMemory`.
        memory: u32,
    },
    /// A descriptor that comes with this message.
    Descriptor {
        /// Bytes of it that may be used.
        length: u64,
    },
    /// A buffer of the driver (HAL 1.3).
    Token {
        /// Its token.
        token: u32,
    },
    /// A source of a later version; the call that names it is refused.
    Unknown {
        /// Its kind.
        kind: u32,
    },
}

impl PoolSource {
    /// How many descriptors come with it.
    pub(super) fn descriptors(&self) -> usize {
        usize::from(matches!(self, PoolSource::Descriptor { .. }))
    }
}

/// One execution over the socket.
#[derive(Debug, Clone, PartialEq)]
pub struct SynchronousRequest {
    /// From [`Answer::Prepared`](super::Answer::Prepared).
    pub model: u32,
    /// One per input.
    pub inputs: List<WireArgument, ARGUMENTS_MAX>,
    /// One per output.
    pub outputs: List<WireArgument, ARGUMENTS_MAX>,
    /// What the arguments lie in.
    pub pools: List<PoolSource, POOLS_MAX>,
    /// Whether to measure.
    pub measure_timing: bool,
    /// When the result is no longer wanted: nanoseconds on the steady clock.
    pub deadline: Option<u64>,
    /// Longest time of one loop, in nanoseconds.
    pub loop_timeout: Option<u64>,
}

impl SynchronousRequest {
    /// How many descriptors come with it.
    pub(super) fn descriptors(&self) -> usize {
        self.pools.0.iter().map(PoolSource::descriptors).sum()
    }
}

/// One execution that waits for fences.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct FencedRequest {
    /// What to execute.
    pub request: SynchronousRequest,
    /// How many fences to wait for: at most [`FENCES_MAX`].
    pub fences: u32,
    /// Longest time from the moment on at which they are done, in nanoseconds.
    pub duration: Option<u64>,
}

/// Files of a compilation, in the order in which their descriptors come: those of the model, then those
/// with data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CachePlace {
    /// Of the application.
    pub token: [u8; CACHE_TOKEN_BYTES],
    model_files: u32,
    data_files: u32,
}

impl CachePlace {
    /// So many files; at most [`CACHE_FILES_MAX`](burst_hal::CACHE_FILES_MAX) of each kind go with a message.
    #[must_use]
    pub fn new(token: [u8; CACHE_TOKEN_BYTES], files: CacheFiles) -> Self {
        CachePlace { token, model_files: files.model, data_files: files.data }
    }

    /// How many files the message says to bring.
    #[must_use]
    pub fn kinds(&self) -> CacheFiles {
        CacheFiles { model: self.model_files, data: self.data_files }
    }

    /// How many descriptors it says that come with it.
    pub(super) fn files(&self) -> usize {
        (self.model_files as usize).saturating_add(self.data_files as usize)
    }
}

/// What a buffer of the driver is for.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct WireBufferRequest {
    /// As far as the client knows more than the models.
    pub dimensions: List<u32, RANK_MAX>,
    /// Numbers of prepared models.
    pub models: List<u32, BUFFER_MODELS_MAX>,
    /// Inputs that it will be used for.
    pub inputs: List<WireRole, ROLES_MAX>,
    /// Outputs that it will be used for.
    pub outputs: List<WireRole, ROLES_MAX>,
}

/// An input or output of a model.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct WireRole {
    model: u32,
    position: u32,
    frequency: f32,
}

impl From<&BufferRole> for WireRole {
    fn from(role: &BufferRole) -> Self {
        let BufferRole { model, position, frequency } = *role;
        WireRole { model, position, frequency }
    }
}

impl From<&WireRole> for BufferRole {
    fn from(role: &WireRole) -> Self {
        let WireRole { model, position, frequency } = *role;
        BufferRole { model, position, frequency }
    }
}
