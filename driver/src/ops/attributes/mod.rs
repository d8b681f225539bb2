//! Attributes: operands that say how an operation computes and not on what. Each kind is parsed
//! here, once, into a type that the operation's inference, kernels and reference share.
//!
//! An operation names its attributes in its [`WithAttributes`](crate::op::WithAttributes). What only
//! one family has (a suppression of detections, the tuning of an LSTM) is parsed in the family's own
//! files, through the same [`Operands`](crate::op::Operands).

mod activation;
mod axis;
mod conv;
mod layout;
mod lists;
mod numbers;
mod padding;
mod pool;
mod resize;

pub(crate) use activation::{activation, recurrent_activation};
pub(crate) use axis::{Axis, AxisList, AxisSet, MAX_RANK};
pub(crate) use conv::{ConvAttributes, ConvForm};
pub(crate) use layout::Layout;
pub(crate) use lists::{List, Pairs, list, pairs};
pub(crate) use numbers::{Number, positive_float, positive_i32};
pub(crate) use padding::Padding;
pub(crate) use pool::PoolAttributes;
pub(crate) use resize::ResizeAttributes;
