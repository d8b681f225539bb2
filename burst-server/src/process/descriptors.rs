//! How many file descriptors the process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ServerError;

/// Raises the process's own limit of open descriptors as far as it may; gives the limit.
///
/// The soft limit is 1024 on most systems for the sake of programs that use `select`; every memory,
/// queue and client of a service is a descriptor.
///
/// # Errors
/// The system refuses; the limit is as it was.
pub fn raise_descriptor_limit() -> Result<u64, ServerError> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return Ok(current.unwrap_or(u64::MAX));
    }
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|errno| ServerError::System { call: "setrlimit", errno })?;
    let raised = maximum.unwrap_or(u64::MAX);
    tracing::debug!(from = current, to = raised, "limit of file descriptors");
    Ok(raised)
}
