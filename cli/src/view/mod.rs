//! `burst stream --view`: what the stream sees, as a page for browsers on this machine.
//!
//! A small HTTP server on the loopback. The page asks for one frame after the other; each answer is the newest
//! frame there is, so that a slow viewer misses frames and never holds up the stream. The stream hands a frame over
//! only while somebody waits for one. Nothing is shown to who does not know the token in the address.

mod frames;
mod request;
mod server;

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use frames::Frames;
pub(crate) use frames::Shown;
use server::Server;

/// A page, for as long as this is there.
#[derive(Debug)]
pub(crate) struct View {
    frames: Arc<Frames>,
    address: String,
}

impl View {
    /// Starts the server, on a port that is free, with a token that nobody can guess.
    pub(crate) fn start() -> Result<View> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.context("--view: no port of 127.0.0.1 can be listened at")?;
        let (port, token) = (listener.local_addr()?.port(), token()?);
        let frames = Arc::new(Frames::default());
        let address = format!("http://127.0.0.1:{port}/{token}/");
        Server::new(Arc::clone(&frames), token, port).start(listener)?;
        Ok(View { frames, address })
    }

    /// What to open in a browser.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The stream is at this frame; true where somebody waits for it, who gets it with [`View::show`].
    pub(crate) fn is_awaited(&self, number: u64) -> bool {
        self.frames.is_awaited(number)
    }

    /// Hands the frame that the stream is at to those who wait.
    pub(crate) fn show(&self, shown: Shown) {
        self.frames.show(shown);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.frames.end();
    }
}

/// Bytes of the token: as many as a key has that nobody can guess.
const TOKEN_BYTES: usize = 16;

fn token() -> Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    let flags = rustix::rand::GetRandomFlags::empty();
    // Of so few bytes the kernel gives all or none.
    let filled = rustix::rand::getrandom(&mut bytes[..], flags).context("--view: no token")?;
    anyhow::ensure!(filled == TOKEN_BYTES, "--view: the token has {filled} random bytes");
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
