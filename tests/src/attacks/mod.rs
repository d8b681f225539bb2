//! Attacks on a service, each from a process of its own, beside an honest client in another.
//!
//! Tests hold the service to what it promises (`tests/tests/attacks/`); `benches attacks` measures
//! what the honest client notices. Both programs start themselves again for every part:
//! [`play_if_asked`] comes first in their `main`.
//!
//! | file | what |
//! |---|---|
//! | `child.rs` | a process in a role |
//! | `service.rs` | `burst serve` within limits, and what is seen of it from outside |
//! | `honest.rs` | the honest client |
//! | `attackers/` | the attacks |
//! | `models.rs`, `connection.rs` | what attackers send, and over what |
//! | `users.rs` | who they are |

mod attackers;
mod child;
mod connection;
mod honest;
mod models;
mod roles;
mod service;
mod users;

pub use attackers::*;
pub use child::{Child, HANG, User};
pub use connection::{Connection, Outcome};
pub use honest::{Honest, Report};
pub use models::{busy, slow_constants, small_model};
pub use roles::play_if_asked;
pub use service::{Confinement, Metrics, Service};
pub use users::{NEIGHBOUR, STRANGER, is_root};
