//! A model that is run often: its inputs, outputs and states in pools, and the requests for it.
//!
//! [`ModelSession`] is the whole of it over any [`Device`](crate::Device): open it, write inputs,
//! run, read outputs. A caller that needs its own memory or its own way to send requests, such as a
//! client whose pools another process maps, uses the parts:
//!
//! | part | what |
//! |---|---|
//! | [`PoolLayout`], [`TensorSlot`] | tensors one behind the other in a pool, for one frame or several |
//! | [`StateBinding`], [`StatePhase`] | states of recurrent models, double-buffered, never copied |
//! | [`SessionLayout`] | both for a model: where each input, output and state lies |
//! | [`SessionTensors`] | the same with the pools, and every request made in advance |
//! | [`PoolAllocator`] | makes the pools |
//! | [`Executor`] | a prepared model over a [`Route`](crate::Route) |
//!
//! Requests are made once: a run allocates nothing here, whatever the phase of the states.

mod allocator;
mod elements;
mod error;
mod executor;
mod layout;
mod model_session;
mod pool_layout;
mod state;
mod tensors;
#[cfg(test)]
mod tests;

pub use allocator::{HeapAllocator, PoolAllocator};
pub use error::{LayoutError, SessionError};
pub use executor::Executor;
pub use layout::{LayoutOptions, SessionLayout};
pub use model_session::{ModelSession, SessionOptions};
pub use pool_layout::{ALIGNMENT, MAX_POOL_BYTES, PoolLayout, TensorSlot};
pub use state::{StateBinding, StatePhase, fill_with_zero};
pub use tensors::SessionTensors;
