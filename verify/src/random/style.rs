//! What a random model may be like.

use super::Class;
use super::rng::Rng;

/// What a model may be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// Elements of a value that comes from outside.
    pub(super) max_leaf_elements: u32,
    /// Elements of a value that operations go on with: what grows beyond is an output.
    pub(super) max_elements: u32,
    /// The largest dimension of what comes from outside.
    pub(super) largest: u32,
    /// Whether dimensions may be far larger than others.
    pub(super) is_long: bool,
    /// Whether there is so much to compute that threads share it.
    pub(super) is_heavy: bool,
    /// Whether values lie at the edges of their types, too.
    pub(super) has_edges: bool,
    /// Whether floats are infinite or NaN, too.
    pub(super) has_specials: bool,
    /// Whether floats are so large that sums of them overflow, too: in one order, and perhaps not in another.
    pub(super) has_extremes: bool,
    /// Whether shapes may come from values, or be empty.
    pub(super) is_open: bool,
}

impl Style {
    /// Shapes that are known, and small numbers.
    pub(super) const CALM: Style = Style {
        max_leaf_elements: 1 << 9,
        max_elements: 1 << 11,
        largest: 7,
        is_long: false,
        is_heavy: false,
        has_edges: false,
        has_specials: false,
        has_extremes: false,
        is_open: false,
    };

    /// Anything.
    pub(super) fn wild(class: Class, largest: u32, rng: &mut Rng) -> Self {
        let is_long = class == Class::Single;
        let is_heavy = rng.chance(0.25) && is_long;
        let max_leaf_elements = match class {
            Class::Single if is_heavy => 1 << 17,
            Class::Single => 1 << 12,
            Class::Small | Class::Large => 1 << 9,
        };
        Style {
            max_leaf_elements,
            max_elements: if is_long { 2 * max_leaf_elements } else { 4 * max_leaf_elements },
            largest: largest.min(if is_long { 1000 } else { 10 }).max(1),
            is_long,
            is_heavy,
            has_edges: rng.chance(0.3),
            has_specials: rng.chance(0.1),
            has_extremes: false,
            is_open: true,
        }
    }

    pub(super) fn is_calm(&self) -> bool {
        !self.is_open
    }
}
