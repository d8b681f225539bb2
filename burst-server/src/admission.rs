//! Who is let in, and with how much.

pub(crate) mod limits;
pub(crate) mod users;
