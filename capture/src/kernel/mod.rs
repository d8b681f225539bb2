//! The calls of the kernel: the only `unsafe` here.
//!
//! Rules:
//! 1. What goes through [`ioctl::call`] is plain data (`FromBytes + IntoBytes`) whose size the request's number carries,
//!    and no request in the table there has the kernel follow an address inside it.
//! 2. Bytes of a mapping leave as copies; no reference to them is ever made.

pub(crate) mod abi;
pub(crate) mod ioctl;
pub(crate) mod mapping;
pub(crate) mod poll;
