//! Third parties for the harness: other ways for two processes on one machine to exchange requests
//! and answers, doing the same work with the same checks; and another library that runs the same
//! models ([`model`]).
//!
//! They are dependencies of this package alone; building the product never compiles them.

#![forbid(unsafe_code)]

mod iceoryx;
mod ipc;
pub mod model;
mod shmem;

use burst_harness::{Peer, own_peers};

pub use iceoryx::{Frame as IceoryxFrame, PublishSubscribe, RequestResponse};
pub use ipc::IpcChannel;
pub use shmem::ShmemIpc;

/// Every peer there is: floors, ours, what the system offers, third parties.
#[must_use]
pub fn all_peers() -> Vec<&'static dyn Peer> {
    let mut peers = own_peers();
    peers.extend([
        &RequestResponse as &dyn Peer,
        &PublishSubscribe,
        &IceoryxFrame,
        &ShmemIpc,
        &IpcChannel,
    ]);
    peers
}

/// Calls a method with the size of the request as a constant: these peers move typed values.
macro_rules! with_size {
    ($bytes:expr, $call:ident::<$size:ident>($($argument:expr),*)) => {
        match $bytes {
            64 => $call::<64>($($argument),*),
            256 => $call::<256>($($argument),*),
            1024 => $call::<1024>($($argument),*),
            got => Err(burst_harness::HarnessError::WrongLength { got, expected: 1024 }),
        }
    };
}
pub(crate) use with_size;

/// Sizes that [`with_size`] knows.
pub(crate) fn has_size(bytes: usize) -> bool {
    matches!(bytes, 64 | 256 | 1024)
}

/// The request as a value of its size.
#[inline]
pub(crate) fn sized<const N: usize>(
    request: &[u8],
) -> Result<&[u8; N], burst_harness::HarnessError> {
    let got = request.len();
    request.try_into().map_err(|_| burst_harness::HarnessError::WrongLength { got, expected: N })
}
