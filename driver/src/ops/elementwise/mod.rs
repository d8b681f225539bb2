//! Arithmetic, comparison and logic, value by value.

use crate::op::OpDef;

pub mod abs;
pub mod add;
mod arithmetic;
mod comparison;
pub mod div;
pub mod equal;
pub mod exp;
mod extremum;
mod float_sum;
pub mod floor;
pub mod greater;
pub mod greater_equal;
pub mod less;
pub mod less_equal;
pub mod log;
mod logic;
pub mod logical_and;
pub mod logical_not;
pub mod logical_or;
pub mod maximum;
pub mod minimum;
pub mod mul;
pub mod neg;
pub mod not_equal;
pub mod pow;
pub mod prelu;
mod requantize;
pub mod rsqrt;
pub mod select;
pub mod sin;
pub mod sqrt;
pub mod sub;
mod unary;

/// The operations of this family.
pub static OPS: &[&OpDef] = &[
    &abs::DEF,
    &add::DEF,
    &div::DEF,
    &equal::DEF,
    &exp::DEF,
    &floor::DEF,
    &greater::DEF,
    &greater_equal::DEF,
    &less::DEF,
    &less_equal::DEF,
    &log::DEF,
    &logical_and::DEF,
    &logical_not::DEF,
    &logical_or::DEF,
    &maximum::DEF,
    &minimum::DEF,
    &mul::DEF,
    &neg::DEF,
    &not_equal::DEF,
    &pow::DEF,
    &prelu::DEF,
    &rsqrt::DEF,
    &select::DEF,
    &sin::DEF,
    &sqrt::DEF,
    &sub::DEF,
];
