//! Bytes on the boundary between two processes.
//!
//! Three things cross it, and each has its file: the datums of a burst's two queues
//! ([`RequestPacket`], [`decode_request`], [`ResultPacket`], [`decode_result`]), byte for byte
//! those of HAL 1.2; the messages of the control socket ([`control`]); and the framing of that
//! socket with its descriptors ([`socket`]).
//!
//! Everything here is a function from bytes to values or back. No thread, no mapping, no clock.
#![forbid(unsafe_code)]

pub mod control;
mod cursor;
mod datum;
mod error;
mod extras;
mod frame;
mod request;
mod result;
pub mod socket;

pub use datum::{
    DATUM_BYTES, DATUM_QUANTUM, DatumBytes, InformationDatum, OperandDatum, RequestDatum,
    ResultDatum,
};
pub use error::WireError;
pub use extras::{Features, RequestExtras, ResultExtras};
pub use frame::{PACKET_MIN, PIPELINE_DEPTH_MAX, PacketKind, packet_datums};
pub use request::{RequestPacket, SlotRequest, decode_request};
pub use result::{ResultPacket, check_shapes, decode_result};
