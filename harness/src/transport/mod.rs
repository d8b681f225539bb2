//! Transport.

pub mod case;
pub mod checks;
pub mod command;
pub mod link;
pub mod peers;
pub mod plan;
pub mod process;
pub mod report;
pub mod sample;
pub mod session;
mod subject;
pub mod work;
