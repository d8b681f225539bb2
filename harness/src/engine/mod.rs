//! One engine of rounds for everything that is measured here.
//!
//! A [`Subject`] is what is compared: a peer of the transport in one case, a model over one path. A
//! [`Trial`] is one timed life of it, from setting up to giving back. In each round of a [`Run`] every
//! subject that still needs one has a trial, in an order that is reversed from one round to the next; so no
//! subject polls or holds caches during another's trial, and none always follows the same one. Ratios
//! are taken within a round, and a [`Spread`] is their median and range, so that a change of the
//! machine from one round to the next acts on both sides of each ratio.
//!
//! A subject may have a [`Floor`]: what it is compared with has a trial right before and one right
//! after each of its own. A round whose two floors disagree, or in which an end shared its core with a
//! thread of somebody else, does not count ([`Verdict`]) and is repeated.
//!
//! | file | what |
//! |---|---|
//! | `subject.rs` | subjects, trials, how long a trial is |
//! | `track.rs` | one subject with its rounds, one floor with its trials |
//! | `run.rs` | who has a trial when; which rounds count |
//! | `verdict.rs`, [`quiet`] | what becomes of a round; whether a core is ours alone |
//! | `spread.rs`, `times.rs` | medians and ranges over rounds; quantiles over times |

pub mod quiet;
mod run;
mod spread;
mod subject;
mod times;
mod track;
mod verdict;

pub use run::{Run, Watch};
pub use spread::{Spread, median};
pub use subject::{Length, Subject, Trial};
pub(crate) use times::to_f64;
pub use times::{Quantiles, Times, nearest_rank};
pub use track::{Floor, Round, Track, Wanted};
pub use verdict::{FLOOR_TOO_FAST, FLOORS_APART_MAX, Verdict, judge};
