//! The models that loom runs under every interleaving: see `../README.md`.

#![cfg(loom)]

mod event;
mod ring;
mod unsync;
