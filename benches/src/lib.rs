//! Third parties for the harness: other ways for two processes on one machine to exchange requests
//! and answers, and another library that runs the same models ([`model`]). Beside them what an honest
//! client notices of attacks on its service ([`attacks`]), an urgent model of a less urgent one
//! ([`priorities`]), what compilations in files save ([`cache`]), and what each feature around an execution
//! costs ([`costs`]), an inference through NNAPI's C functions ([`ndk`]), and who looks at a service
//! ([`top`]).
//!
//! The transport's third parties are compiled with the feature `peers` alone: who only builds or tests
//! this repository does not wait for them.

#![forbid(unsafe_code)]

pub mod attacks;
pub mod cache;
mod checks;
pub mod costs;
pub mod model;
pub mod ndk;
#[cfg(feature = "peers")]
pub mod peers;
pub mod priorities;
pub mod top;

use burst_harness::transport::names;
use burst_harness::{HarnessError, Peer, own_peers};

/// Names of the transport's third parties, whether this program was built with them or not.
pub const THIRD_PARTIES: [&str; 5] = [
    names::ICEORYX_REQUEST,
    names::ICEORYX_PUBLISH,
    names::ICEORYX_FRAME,
    names::SHMEM_IPC,
    names::IPC_CHANNEL,
];

/// How to build and start this program with its third parties.
const WITH_PEERS: &str = "cargo run --release -p benches --features peers -- transport";

/// Every peer that this program was built with: floors, ours, what the system offers and, with the
/// feature `peers`, third parties.
#[must_use]
pub fn all_peers() -> Vec<&'static dyn Peer> {
    #[cfg_attr(not(feature = "peers"), expect(unused_mut, reason = "nothing is added"))]
    let mut all = own_peers();
    #[cfg(feature = "peers")]
    all.extend(peers::third_parties());
    all
}

/// The third parties that this program was built without.
#[must_use]
pub fn left_out() -> Vec<&'static str> {
    let built = all_peers();
    let is_built = |name: &&str| built.iter().any(|peer| peer.name() == *name);
    THIRD_PARTIES.into_iter().filter(|name| !is_built(name)).collect()
}

/// What a run over all peers has to say of those that it leaves out; `None` where it leaves out none.
#[must_use]
pub fn left_out_notice() -> Option<String> {
    let names = left_out().join(", ");
    (!names.is_empty()).then(|| {
        format!(
            "this program was built without its feature `peers`, so these third parties are left \
             out: {names}; `{WITH_PEERS}` measures them too"
        )
    })
}

/// Whether each peer that was asked for by name can be measured as far as the features go.
///
/// # Errors
/// One of them is a third party that this program was built without: a sentence that says how to
/// build it in.
pub fn check_built(asked: &[String]) -> Result<(), HarnessError> {
    let left_out = left_out();
    match asked.iter().find(|name| left_out.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(HarnessError::peer(format!(
            "{name} is a third party that this program was built without: `{WITH_PEERS} --peers \
             {name}` builds and measures it"
        ))),
    }
}
