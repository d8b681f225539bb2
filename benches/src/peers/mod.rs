//! Third parties: other ways for two processes on one machine to exchange requests and answers, doing
//! the same work with the same checks.

mod iceoryx;
mod ipc;
mod shmem;

use burst_harness::Peer;

pub use iceoryx::{Frame as IceoryxFrame, PublishSubscribe, RequestResponse};
pub use ipc::IpcChannel;
pub use shmem::ShmemIpc;

/// All of them.
#[must_use]
pub fn third_parties() -> [&'static dyn Peer; 5] {
    [&RequestResponse, &PublishSubscribe, &IceoryxFrame, &ShmemIpc, &IpcChannel]
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
use with_size;

/// Sizes that [`with_size`] knows.
fn has_size(bytes: usize) -> bool {
    matches!(bytes, 64 | 256 | 1024)
}

/// The request as a value of its size.
#[inline]
fn sized<const N: usize>(request: &[u8]) -> Result<&[u8; N], burst_harness::HarnessError> {
    let got = request.len();
    request.try_into().map_err(|_| burst_harness::HarnessError::WrongLength { got, expected: N })
}
